"""What a recording did not see, or what was gone when it was judged: no part of a ``stable``.

Four facts: arrays or tensors whose allocator could not be followed; processes that the program
started and that have no recording; memory of native code, of which only the sum is known, where it
is more than everything that is tracked; a peak far above the moment of judging. Each has a
sentence. Where one dominates, nothing that was found means that nothing grows, and it says what to
do.

Covers: facts of one recording; why its samples are too few.
Does not cover: damaged recordings and lost events, which the verdict knows; what still rose at the
end, see ``growth.late_rise``.
See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.growth.curves import Window, python_bytes
from tlmem.analysis.growth.process_growth import (
    FEWEST_SAMPLES,
    steady_begin,
)
from tlmem.analysis.growth.robust import floor_curve
from tlmem.analysis.lifetimes import Lifetimes, tracked_over_time
from tlmem.analysis.model import Attribution, Finding, Peak
from tlmem.analysis.own_time import Delays
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    import pandas as pd

    from tlmem.recording.reader import Recording

TIMES_LEVEL = 2.0
"""A peak that is so many times the level when judged is said."""
LEAST_CPU_EACH_S = 0.1
"""CPU seconds of one, on average: commands that are done sooner hold no memory for long."""
MOST_SENTENCES = 2
"""Said after ``stable``; all are findings."""

_NUMBER = re.compile(r"([a-z_]+)=([0-9]{1,18})")


@dataclass(frozen=True)
class Unseen:
    """One fact: ``count`` processes or objects and ``bytes`` of theirs, in one sentence.

    ``remedy`` is what to do; it is there where the fact dominates what was seen.
    """

    kind: str
    bytes: int
    count: int
    sentence: str
    remedy: str = ""

    def finding(self) -> Finding:
        """The same as a finding; not to be seen is no fault."""
        return Finding(
            kind=self.kind,
            severity="info",
            count=self.count,
            bytes=self.bytes,
            evidence=self.sentence,
        )


def unseen(
    recording: Recording,
    places: Places,
    lives: Lifetimes,
    samples: pd.DataFrame,
    level: Attribution,
    peak: Peak | None,
) -> list[Unseen]:
    """Every fact, what bears most on the verdict first.

    Args:
        samples: with the columns of ``memory.devices.with_devices``.
        level, peak: the parts of resident memory when judged and when it was highest.
    """
    found = [
        foreign_allocators(recording.info),
        unrecorded_processes(recording.info),
        native_memory(recording.info, lives, samples, level),
        passed_peak(places, lives, level, peak),
    ]
    return [fact for fact in found if fact is not None]


def sentences(facts: list[Unseen]) -> list[str]:
    """What is said after ``stable``."""
    return [fact.sentence for fact in facts[:MOST_SENTENCES]]


def dominated(facts: list[Unseen]) -> str:
    """Why nothing can be said of the whole, as a sentence; empty when something can."""
    for fact in facts:
        if fact.remedy:
            return f"{fact.sentence[0].lower()}{fact.sentence[1:-1]}; {fact.remedy}."
    return ""


def steady_samples(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> int:
    """How many samples of resident memory lie behind the warm-up of a span."""
    window = Window(samples, begin_ns, end_ns)
    steady_ns = steady_begin(window.time_ns, begin_ns, end_ns, Delays.of(samples))
    return int(np.count_nonzero(window.taken("anon") & (window.time_ns >= steady_ns)))


def why_not_sampled(recording: Recording, lives: Lifetimes) -> str:
    """Why samples cannot speak for what no line holds, as a sentence."""
    samples = recording.samples
    taken = int(samples["anon"].notna().sum()) if "anon" in samples else 0
    left = steady_samples(samples, lives.work_begin_ns, lives.judged_ns)
    begin = "no line keeps more and more arrays, but resident memory was sampled"
    if recording.info.get("rss_interval_ms") == "0":
        return f"{begin} at the begin and the end alone; record without --rss-interval 0."
    if left < taken and taken >= FEWEST_SAMPLES:
        return (
            f"{begin} {format_count(taken)} times in all and {format_count(left)} times after the "
            "program's warm-up, which cannot speak for the rest; run it for longer."
        )
    return (
        f"{begin} {format_count(taken)} times only, which cannot speak for the rest; record with a "
        "shorter --rss-interval or for longer."
    )


def foreign_allocators(info: dict[str, str]) -> Unseen | None:
    """PyTorch's tensors, or NumPy's arrays, whose allocator the recorder could not follow."""
    hook, handler = info.get("torch.hook", ""), info.get("numpy.handler", "default_allocator")
    why = []
    if hook.startswith("none"):
        reason = hook.removeprefix("none").strip().removeprefix("(").removesuffix(")")
        why.append(f"PyTorch's tensors were not recorded{f': {reason}' if reason else ''}")
    if handler != "default_allocator":
        why.append(f"NumPy's allocator was replaced by '{handler}'; its arrays were not recorded")
    if not why:
        return None
    sentence = f"{'. '.join(why)}."
    return Unseen("unseen-allocator", 0, 0, sentence)


def unrecorded_processes(info: dict[str, str]) -> Unseen | None:
    """Processes that were started and not recorded: those of Python, and what did or held much."""
    counts = {name: int(text) for name, text in _NUMBER.findall(info.get("processes", ""))}
    if not counts:
        return None
    running, others = counts.get("running", 0), counts.get("others", 0)
    own_s = counts.get("own_cpu_ns", 0) / 1e9
    cpu_s, largest = counts.get("running_cpu_ns", 0) / 1e9, counts.get("running_peak_bytes", 0)
    # Of those that were waited for there is one sum. It is that of unrecorded ones if none recorded
    # itself, or only forks that executed another program at once and run as such.
    if counts.get("followed", 0) <= max(0, running - others):
        cpu_s += counts.get("children_cpu_ns", 0) / 1e9
        waited_for = counts.get("children_peak_bytes", 0)
        # A child has its parent's peak before it executes anything.
        largest = max(largest, waited_for if waited_for > counts.get("own_peak_bytes", 0) else 0)
    count = max(others, running)
    much = cpu_s >= max(RULES.unseen_cpu_s, LEAST_CPU_EACH_S * count)
    if not much and largest < RULES.unseen_bytes:
        return unrecorded_pythons(info, counts.get("pythons", 0))
    who = f"{format_count(count)} process{'es' if count > 1 else ''} that it started"
    who = f"{who} {'were' if count > 1 else 'was'}" if count else "Processes that it started were"
    held = f", and the largest held {format_bytes(largest)}" if largest else ""
    pythons = counts.get("pythons", 0)
    advice = advice_about_processes(info, pythons)
    remedy = advice if much and cpu_s > own_s else ""
    next_step = f"; {advice}" if pythons and not remedy else ""
    return Unseen(
        "unseen-processes",
        largest,
        count,
        f"{who} not recorded: CPU time {format_seconds(cpu_s)}, the program's own "
        f"{format_seconds(own_s)}{held}{next_step}.",
        remedy,
    )


def unrecorded_pythons(info: dict[str, str], count: int) -> Unseen | None:
    """Interpreters that were started and not recorded, whatever they did: a program may do nothing
    but start them."""
    if not count:
        return None
    processes = f"Python process{'es' if count > 1 else ''} that it started"
    return Unseen(
        "unseen-processes",
        0,
        count,
        f"{format_count(count)} {processes} {'were' if count > 1 else 'was'} not recorded; "
        f"{advice_about_processes(info, count)}.",
    )


def advice_about_processes(info: dict[str, str], pythons: int) -> str:
    """How to record the processes of a program, too."""
    if info.get("follow") == "all":
        return (
            "interpreters with -S, -E or -I, or without this version of tlmem, are not followed: "
            "put tlmem record into their command line"
        )
    what = "them" if pythons else "what they run of Python"
    return f"record {what} with tlmem record --follow all"


def native_memory(
    info: dict[str, str], lives: Lifetimes, samples: pd.DataFrame, level: Attribution
) -> Unseen | None:
    """Memory of native code, where it is more than everything that is tracked."""
    held = level.native_bytes + level.mapped_bytes
    known = level.tracked_bytes - level.untouched_bytes + level.python_bytes + level.pool_bytes
    if held < RULES.unseen_bytes or held <= known:
        return None
    names = [name for name in info.get("packages", "").split(",") if name]
    whose = f" (imported are {', '.join(names)})" if len(names) > 1 else ""
    whose = f" ({names[0]} is imported)" if len(names) == 1 else whose
    dominates = held >= RULES.nearly_all * (held + known) and not is_constant(lives, samples)
    return Unseen(
        "unseen-native",
        held,
        0,
        f"{format_bytes(held)} are native code's{whose}, more than all arrays and Python's heap "
        f"({format_bytes(known)}): only their sum is seen, not what holds them.",
        "it rose, though not evenly: run it for longer, or ask that code's own profiler"
        if dominates
        else "",
    )


def is_constant(lives: Lifetimes, samples: pd.DataFrame) -> bool:
    """Whether native memory stood still behind the warm-up, but for what was given back.

    One large step is what is made once.
    """
    window = Window(samples, lives.work_begin_ns, lives.judged_ns)
    rows = window.taken("anon")
    values = window.bytes("anon") - window.bytes("recorder") - window.bytes("malloc_free")
    values = values - python_bytes(window) - window.bytes("tracked") + window.bytes("untouched")
    steady_ns = lives.work_begin_ns + RULES.warm_up * (lives.judged_ns - lives.work_begin_ns)
    rows = rows & (window.time_ns >= steady_ns)
    if np.count_nonzero(rows) < 2:
        return True
    floor = floor_curve(values[rows])
    rose, step = float(floor[-1] - floor[0]), float(np.max(np.diff(floor)))
    return (
        rose < max(RULES.unseen_bytes, RULES.large_share * float(floor[-1]))
        or step > RULES.majority * rose
    )


def passed_peak(
    places: Places, lives: Lifetimes, level: Attribution, peak: Peak | None
) -> Unseen | None:
    """A peak far above the moment of judging: of resident memory, or else of what is tracked."""
    if not len(lives):
        return None
    most, at_ns, left, what = -1, 0, 0, "of arrays"
    for times_ns, held in tracked_over_time(lives):
        highest = int(np.argmax(held))
        if int(held[highest]) > most:
            most, at_ns = int(held[highest]), int(times_ns[highest])
        left = int(held[-1])
    if peak is not None and peak.at_s is not None and level.known:
        resident = peak.parts.resident_bytes
        if is_far_above(resident, level.resident_bytes):
            most, left, what = resident, level.resident_bytes, "resident"
            at_ns = lives.begin_ns + round(peak.at_s * 1e9)
    if not is_far_above(most, left):
        return None
    return Unseen(
        "passed-peak",
        most,
        0,
        f"The peak was far above: {format_bytes(most)} {what} after "
        f"{format_seconds(max(0, at_ns - lives.begin_ns) / 1e9)}, {format_bytes(left)} when "
        f"judged{held_then(places, lives, at_ns)}; tlmem plot shows when.",
    )


def is_far_above(peak: int, level: int) -> bool:
    """Whether a peak is worth a sentence."""
    return peak >= TIMES_LEVEL * level and peak >= level + RULES.unseen_bytes


def held_then(places: Places, lives: Lifetimes, time_ns: int) -> str:
    """The line that held most at a moment, as part of a sentence; empty where nothing was held."""
    then = (lives.born <= time_ns) & (lives.died > time_ns)
    held = np.bincount(
        lives.group[then], weights=(lives.size * lives.weight)[then], minlength=places.count
    )
    if not then.any() or held.max() < RULES.unseen_bytes:
        return ""
    most = int(np.argmax(held))
    return f"; {format_bytes(held[most])} of it were allocated at {place(places.frames[most])}"
