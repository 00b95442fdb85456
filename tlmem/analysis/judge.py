"""The answer to "does this program leak?": questions in order; the first that applies decides.

A doubt is never a pass: only when every question was answered with no is a program stable. Each
verdict carries the questions that were asked and what each curve was asked for them, see
``tlmem report --explain``.

Covers: the order of the questions. Does not cover: whether something grows (``growth``), what is
said about it (``sentences``), thresholds (``rules``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis import sentences
from tlmem.analysis.growth.growing_arrays import Enlargement
from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.growth.heap_lines import SampledGrowth
from tlmem.analysis.growth.late_rise import Unsettled
from tlmem.analysis.growth.new_sizes import NewSizes
from tlmem.analysis.growth.per_mark import Marks
from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.growth.stages import LastStage
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.deep_graphs import DeepGraph
from tlmem.analysis.leaks.garbage import arrays_in_cycles
from tlmem.analysis.leaks.left_on import seen_modes
from tlmem.analysis.lifetimes import Lifetimes, alive_at, is_imported
from tlmem.analysis.model import Asked, Finding, Question, Verdict
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES
from tlmem.analysis.unseen import Unseen, dominated, why_not_sampled
from tlmem.analysis.unseen import sentences as not_seen

if TYPE_CHECKING:
    import pandas as pd

    from tlmem.recording.reader import Recording


OF_KIND = {"tape": "leak", "shared": "native"}
"""Outcomes of growth that is not called as its kind."""


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict is made from.

    ``growths`` are lines that grow, ``leaks`` the worst of them with who keeps their objects;
    ``growing`` are the groups of these and of lines that only seem to grow: ``garbage`` is of lines
    that would grow too, but only make what Python's collector will free, ``unclear`` of lines of
    which that is not known; ``garbage_arrays`` is how many arrays it would free in all. ``filling``
    is of lines that may only fill a cache, ``cached`` of Python's heap that may, ``buffers`` of
    those whose array is replaced by a larger one when it is full, ``gathered`` of lines whose
    objects were joined into one and freed, ``one_pass`` of those of a snapshot that grow within one
    pass of the model, ``last_stages`` of those that grow within the program's last stage,
    ``one_call`` of lines and memory that grow within one call of a library, ``extended`` of models
    that are extended now and then, ``more_at_a_time`` of lines of which more and more objects are
    alive, all of them young, ``early`` are those that grew in a run too short to tell.
    ``unsettled`` is what still rose at the end, ``mapped`` is of pages of files that did. ``past``
    is of lines that grew and grow no more, ``unseen`` what the recording did not see. ``lines`` and
    ``memory`` are the conditions that lines and kinds of memory were asked. ``sampled`` is of lines
    whose native memory or Python objects grow by their samples. ``deep`` is a tensor whose autograd
    graph becomes ever deeper. ``sizes`` are new ones of tensors, to which a rise of native memory
    may be due.
    """

    recording: Recording
    places: Places
    lives: Lifetimes
    samples: pd.DataFrame
    growths: list[GrowingSite]
    growing: frozenset[int]
    enlargements: list[Enlargement]
    resident: Resident
    marks: Marks = field(default_factory=lambda: Marks({}, {}))
    leaks: list[Survivors] = field(default_factory=list)
    garbage: list[Finding] = field(default_factory=list)
    unclear: list[Finding] = field(default_factory=list)
    filling: list[Finding] = field(default_factory=list)
    buffers: list[Finding] = field(default_factory=list)
    cached: list[Finding] = field(default_factory=list)
    gathered: list[Finding] = field(default_factory=list)
    one_pass: list[Finding] = field(default_factory=list)
    last_stages: list[LastStage] = field(default_factory=list)
    one_call: list[Finding] = field(default_factory=list)
    extended: list[Finding] = field(default_factory=list)
    more_at_a_time: list[Finding] = field(default_factory=list)
    garbage_arrays: int = 0
    early: list[GrowingSite] = field(default_factory=list)
    unsettled: Unsettled | None = None
    mapped: list[Finding] = field(default_factory=list)
    past: list[Finding] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    lines: tuple[Asked, ...] = ()
    memory: tuple[Asked, ...] = ()
    sampled: tuple[SampledGrowth, ...] = ()
    deep: DeepGraph | None = None
    sizes: NewSizes | None = None

    @property
    def rises(self) -> list[Rise]:
        """Growth outside arrays that growing arrays, or what is garbage, do not bring with them.

        Nor do arrays of a line that grew and stopped, as those of a cache that is full now.
        """
        brought = self.brought_along
        return [
            rise
            for rise in self.resident.rises
            if rise.bytes > max(brought, self._more_arrays(rise) * RULES.python_per_array)
        ]

    def _more_arrays(self, rise: Rise) -> int:
        """How many more objects there are at the end of a rise than when it began."""
        lives = self.lives
        moments = np.array([rise.since_ns, lives.judged_ns], np.int64)
        before, after = alive_at(moments, lives.born, lives.died, lives.weight).tolist()
        return max(0, int(after - before))

    @property
    def brought_along(self) -> int:
        """Up to how many bytes outside arrays grow with those that do, or that are garbage."""
        waiting = (*self.garbage, *self.unclear)
        arrays = max(self.garbage_arrays, sum(found.count for found in waiting))
        others = (*self.filling, *self.gathered, *self.extended, *self.one_call)
        others = (*others, *self.more_at_a_time)
        waiting = (*waiting, *others)
        arrays += sum(found.count for found in others)
        growths = (*self.growths, *self.early, *(each.growth for each in self.last_stages))
        arrays += sum(growth.survivors for growth in growths)
        held = sum(growth.bytes for growth in growths)
        held += sum(found.bytes for found in waiting)
        return max(held, int(arrays * RULES.python_per_array))


def judge(evidence: Evidence) -> Verdict:
    """Asks the questions in order; the first one that applies decides."""
    conditions: dict[Answer, tuple[Asked, ...]] = {
        a_line_grows: evidence.lines,
        memory_grows: evidence.memory,
    }
    asked = []
    for text, answer in QUESTIONS:
        verdict = answer(evidence)
        asked.append(Question(text, "no" if verdict is None else "yes", conditions.get(answer, ())))
        if verdict is not None:
            return replace(verdict, trace=tuple(asked))
    return replace(stable(evidence), trace=tuple(asked))


def events_are_missing(evidence: Evidence) -> Verdict | None:
    """What seems alive may have been freed in the hole."""
    missing = evidence.recording.missing_events
    return cannot(sentences.missing(missing)) if missing else None


def a_line_grows(evidence: Evidence) -> Verdict | None:
    """The line that keeps most bytes is named; slopes are those of all of them."""
    growths = evidence.growths
    if not growths:
        return None
    return Verdict(
        "leak",
        " ".join(
            [
                sentences.leak(evidence.places, evidence.lives, evidence.marks, growths),
                *sentences.past_beside_growth(evidence.past, growths[0].bytes),
                *sentences.retained_beside_growth(evidence.resident.retained, growths[0].bytes),
            ]
        ),
        sum(growth.rate.value for growth in growths),
        sum(growth.bytes for growth in growths),
        sum(growth.rate.low for growth in growths),
        sum(growth.rate.high for growth in growths),
    )


def memory_grows(evidence: Evidence) -> Verdict | None:
    """Outside arrays: of a recording that lost events, arrays may be the cause."""
    rises = evidence.rises
    if not rises or evidence.recording.lost_events:
        return None
    rise = rises[0]
    said = sentences.verdict_of_rise(rise, evidence.lives.begin_ns, evidence.lives.nouns)
    deep = evidence.deep if evidence.deep and evidence.deep.explains(rise) else None
    if deep is not None:
        said = sentences.deep_graph(evidence.places, deep, rise, evidence.lives.begin_ns)
    return Verdict(
        "leak" if deep is not None else OF_KIND.get(rise.kind, rise.kind),
        " ".join(
            [
                with_profiler(said, evidence.recording),
                *sentences.past_beside_growth(evidence.past, rise.bytes),
                *sentences.retained_beside_growth(evidence.resident.retained, rise.bytes),
            ]
        ),
        rise.rate.value,
        rise.bytes,
        rise.rate.low,
        rise.rate.high,
    )


def with_profiler(sentence: str, recording: Recording) -> str:
    """What is said of native memory, with PyTorch's profiler as the likely reason if it was on."""
    if seen_modes(recording.info).get("profiler"):
        return sentence.replace(sentences.NODES, sentences.PROFILER)
    return sentence


def events_were_lost(evidence: Evidence) -> Verdict | None:
    """An object that seems alive may have been freed."""
    recording = evidence.recording
    if recording.lost_events:
        return cannot(sentences.lost(recording.lost_events, recording.info.get("stopped", "")))
    return cannot(sentences.damaged(recording.problems[0])) if recording.problems else None


def garbage_or_held(evidence: Evidence) -> Verdict | None:
    """A function may have held what is garbage now."""
    return (
        cannot(sentences.unclear(evidence.unclear[0]), only_growth=True)
        if evidence.unclear
        else None
    )


def a_cache_fills(evidence: Evidence) -> Verdict | None:
    """Until it is full, a cache grows like a leak, and so does a buffer that is used up."""
    filling = [*evidence.filling, *evidence.cached, *evidence.buffers]
    return cannot(sentences.filling(filling[0]), only_growth=True) if filling else None


def sizes_are_new(evidence: Evidence) -> Verdict | None:
    """As long as new sizes come, libraries prepare for them; little of it is not worth a doubt."""
    if evidence.sizes is None or evidence.sizes.rise.bytes < RULES.unsettled_bytes:
        return None
    return cannot(sentences.new_sizes(evidence.sizes), only_growth=True)


def a_pass_is_not_over(evidence: Evidence) -> Verdict | None:
    """Within a pass of the model memory rises as with a leak."""
    return (
        cannot(sentences.one_pass(evidence.one_pass[0]), only_growth=True)
        if evidence.one_pass
        else None
    )


def a_stage_is_not_over(evidence: Evidence) -> Verdict | None:
    """It takes two stages that gave back what they kept to expect the same of the last one."""
    for stage in evidence.last_stages:
        if not stage.is_habit:
            found = stage.finding(evidence.lives, evidence.places)
            return cannot(sentences.last_stage(found), only_growth=True)
    return None


def a_call_is_not_over(evidence: Evidence) -> Verdict | None:
    """Within one call of a library its result may grow as a leak does."""
    return (
        cannot(sentences.one_call(evidence.one_call[0]), only_growth=True)
        if evidence.one_call
        else None
    )


def more_may_be_meant(evidence: Evidence) -> Verdict | None:
    """What holds them grows in number, as callbacks that pile up or as what is simulated."""
    more = evidence.more_at_a_time
    return cannot(sentences.more_at_a_time(more[0]), only_growth=True) if more else None


def too_few_samples(evidence: Evidence) -> Verdict | None:
    """Arrays are known, the rest of the process is not. A snapshot is about its allocator alone."""
    if is_imported(evidence.recording):
        reason = sentences.short_trace(len(evidence.lives))
        return cannot(reason) if reason else None
    if evidence.resident.judged:
        return None
    return cannot(why_not_sampled(evidence.recording, evidence.lives))


def something_still_rises(evidence: Evidence) -> Verdict | None:
    """A leak that has just begun looks the same as a result that is made last."""
    late = evidence.unsettled
    if late is None or late.bytes <= evidence.brought_along:
        return None
    return cannot(sentences.unsettled(late), only_growth=True)


def most_is_unseen(evidence: Evidence) -> Verdict | None:
    """Processes or native code that were not seen did more than what was."""
    reason = dominated(evidence.unseen)
    if not reason:
        return None
    in_cycles = arrays_in_cycles(evidence.recording)
    if in_cycles >= RULES.fewest_survivors:
        reason = f"{reason} {sentences.garbage_beside(in_cycles, evidence.lives.nouns)}"
    return cannot(reason)


def memory_is_retained(evidence: Evidence) -> Verdict | None:
    """The program freed it; an allocator or a pool keeps it."""
    retained = evidence.resident.retained
    if not retained.bytes:
        return None
    said = sentences.verdict_of_retained(retained)
    if retained.rise is None:
        return Verdict("retained", said, 0.0, 0)
    rate = retained.rise.rate
    return Verdict("retained", said, rate.value, retained.rise.bytes, rate.low, rate.high)


def stable(evidence: Evidence) -> Verdict:
    """Every question was answered with no."""
    resolution, sizes = evidence.resident.resolution_bytes_per_s, evidence.sizes
    if sizes is not None:  # no smaller leak would have been told from what libraries prepare
        resolution = max(resolution or 0.0, sizes.rise.rate.high)
    return Verdict(
        "stable",
        " ".join(
            [
                sentences.stable(
                    evidence.lives.run_seconds,
                    resolution,
                    evidence.resident.python_resolution_bytes_per_s,
                    evidence.resident.mapped_resolution_bytes_per_s,
                    evidence.lives.nouns,
                ),
                *sentences.waiting(evidence.garbage, evidence.lives.nouns),
                *sentences.extended(evidence.extended),
                *([sentences.with_sizes(sizes)] if sizes is not None else []),
                *(
                    sentences.larger(evidence.places, it, evidence.lives.noun(it.group))
                    for it in evidence.enlargements[:1]
                ),
                *(finding.evidence for finding in evidence.mapped[:1]),
                *sentences.past_warning(evidence.past),
                *not_seen(evidence.unseen),
                *([sentences.SNAPSHOT] if is_imported(evidence.recording) else []),
            ]
        ),
        0.0,
        0,
        resolution_bytes_per_s=resolution,
    )


def cannot(reason: str, only_growth: bool = False) -> Verdict:
    """The verdict when it cannot be said whether memory grows, and what to do."""
    return Verdict("cannot-judge", f"Cannot judge: {reason}", only_growth=only_growth)


Answer = Callable[[Evidence], Verdict | None]
QUESTIONS: tuple[tuple[str, Answer], ...] = (
    ("Are events missing from the middle of the recording?", events_are_missing),
    ("Does a line keep more and more objects?", a_line_grows),
    ("Does memory outside arrays grow?", memory_grows),
    ("Were events lost, or is the file damaged?", events_were_lost),
    ("Is it unknown whether garbage was held before?", garbage_or_held),
    ("May a cache still be filling?", a_cache_fills),
    ("May native memory grow with new sizes of tensors?", sizes_are_new),
    ("May what grows belong to one pass of the model?", a_pass_is_not_over),
    ("May the growth end with the program's last stage?", a_stage_is_not_over),
    ("May what grows be the result of one call?", a_call_is_not_over),
    ("Are there more and more objects of a line, all young?", more_may_be_meant),
    ("Are there too few samples of resident memory?", too_few_samples),
    ("Does memory still rise at the end?", something_still_rises),
    ("Was most of the program not seen?", most_is_unseen),
    ("Is memory that was freed still resident?", memory_is_retained),
)
"""Each question with its answer, in order."""
