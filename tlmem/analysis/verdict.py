"""The answer to "does this program leak?", in one word and one sentence.

Covers: weighing growing lines, growth outside arrays and what cannot be judged against each other.
Does not cover: finding them; see ``growth``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tlmem.analysis.growth.growing_arrays import Enlargement
from tlmem.analysis.growth.growing_sites import (
    FEW_SURVIVORS,
    FEWEST_SURVIVORS,
    LEAST_BYTES_OF_FEW,
    MANY_SURVIVORS,
    GrowingSite,
)
from tlmem.analysis.growth.late_rise import Unsettled
from tlmem.analysis.growth.per_mark import Marks, step_of_line
from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, Verdict
from tlmem.analysis.places import Places, made_at, place
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SHORTEST_RUN_S = 0.15
"""A run this long without a finding is stable. A program that runs for 0.2 s is recorded for about
50 ms less: the interpreter's start and end are not in the recording."""
PYTHON_BYTES_PER_ARRAY = 4_000
"""A kept array keeps Python objects too; up to this much for each is not growth of its own."""

LATE_SHARE = 0.15
"""Growth that begins after this share of the time until it is judged is said to last since then."""
FEWEST_PASSES = 10
"""After so many backward passes records that pile up are not those of one long graph."""

MANNERS = {
    "kept": "",
    "larger": ", each in place of a smaller one",
    "backlog": ": fewer are freed each time than arrived",
    "beside": " beyond the age at which all others are freed",
    "together": ", as at other lines",
}
"""How growth hides, as part of a sentence."""
RISE_KINDS = {
    "tape": (
        "tape-growth",
        "Records on tapes grew by {bytes} in {seconds}, {rate}, steady since {since} and to the "
        "end, through one backward pass after the other: a value is computed from those of all "
        "steps before it, as by total = total + loss; add loss.item(), or detach() what goes from "
        "step to step.",
    ),
    "native": (
        "native-growth",
        "Memory outside arrays and Python grew by {bytes} in {seconds}, {rate}, steady since "
        "{since} and to the end: native code (a library, an extension, ctypes) keeps what it "
        "allocates.",
    ),
    "driver": (
        "driver-growth",
        "Memory that devices hold beyond what live objects ever used at once grew by {bytes} in "
        "{seconds}, {rate}, steady since {since} and to the end: a driver, or a pool of buffers "
        "above it, keeps what was freed and does not use it again.",
    ),
    "python": (
        "python-growth",
        "Python's own heap grew by {bytes} in {seconds}, {rate}, steady since {since} and to the "
        "end: Python objects (strings, lists, dicts, numbers) are kept, or arrays over memory that "
        "is theirs, such as unpickled ones.",
    ),
}


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict is made from.

    ``garbage`` is of lines that would grow too, but only make what Python's collector will free,
    ``unclear`` of lines of which that is not known; ``garbage_arrays`` is how many arrays it would
    free in all. ``filling`` is of lines that may only fill a container with a bound. ``unsettled``
    is what still rose at the end, ``mapped`` is of pages of files that did.
    """

    recording: Recording
    places: Places
    lives: Lifetimes
    growths: list[GrowingSite]
    enlargements: list[Enlargement]
    resident: Resident
    marks: Marks = field(default_factory=lambda: Marks({}, {}))
    garbage: list[Finding] = field(default_factory=list)
    unclear: list[Finding] = field(default_factory=list)
    filling: list[Finding] = field(default_factory=list)
    garbage_arrays: int = 0
    unsettled: Unsettled | None = None
    mapped: list[Finding] = field(default_factory=list)


def growth_findings(evidence: Evidence) -> list[Finding]:
    """One finding for each growing line."""
    found = []
    for growth in evidence.growths:
        frame = evidence.places.frames[growth.group]
        since = max(0.0, (growth.first_ns - evidence.lives.begin_ns) / 1e9)
        seconds = (growth.judged_ns - growth.first_ns) / 1e9
        lasting = "since then" if since > LATE_SHARE * (since + seconds) else "through the run"
        found.append(
            Finding(
                kind="growing-site",
                severity="warning" if evidence.recording.missing_events else "error",
                count=growth.survivors,
                bytes=growth.bytes,
                evidence=(
                    f"{format_count(growth.survivors)} of {format_count(growth.made)} "
                    f"{evidence.lives.noun(growth.group)}s made "
                    f"{made_at(frame)}{called_from(growth)} since {format_seconds(since)} "
                    f"are still alive{MANNERS[growth.manner]}; {gain_of(growth, seconds)}"
                    f"{by_steps(evidence, growth)}, evenly {lasting}."
                ),
                object=growth.example,
                site=frame,
                stack=evidence.places.stack(growth.site),
                slope_bytes_per_s=growth.rate.value,
                slope_low_bytes_per_s=growth.rate.low,
                slope_high_bytes_per_s=growth.rate.high,
                grew_from_ns=growth.first_ns,
                grew_until_ns=growth.judged_ns,
            )
        )
    return found


def gain_of(growth: GrowingSite, seconds: float) -> str:
    """By how much and how fast, as part of a sentence."""
    if growth.bytes == 0:
        return f"they have no bytes of their own (views, structs), in {format_seconds(seconds)}"
    held, rate = format_bytes(growth.bytes), growth.rate.per_second()
    return f"{held} in {format_seconds(seconds)}, {rate}"


def by_steps(evidence: Evidence, growth: GrowingSite) -> str:
    """What one step of the label keeps that a line follows best, as part of a sentence."""
    if growth.rows is None or len(growth.rows) == 0:
        return ""
    lives = evidence.lives
    step = step_of_line(evidence.marks, lives.born[growth.rows], lives.size[growth.rows])
    if step is None:
        return ""
    objects = f"{step.objects:.3g} {lives.noun(growth.group)}{'' if step.objects == 1 else 's'}"
    return f", {objects} and {format_bytes(step.bytes)} per {step.label}"


def called_from(growth: GrowingSite) -> str:
    """The callers that a growth is limited to, nearest first, as part of a sentence."""
    return "".join(
        f"{', from ' if position else ', called from '}{place(caller)}"
        for position, caller in enumerate(growth.callers)
    ) + ("," if growth.callers else "")


def enlargement_findings(evidence: Evidence) -> list[Finding]:
    """One finding for each line whose arrays are replaced by ever larger ones."""
    return [
        Finding(
            kind="growing-array",
            severity="warning",
            count=1,
            bytes=found.last_bytes,
            evidence=(
                f"Each array made {made_at(evidence.places.frames[found.group])} replaces a "
                f"smaller one: from {format_bytes(found.first_bytes)} to "
                f"{format_bytes(found.last_bytes)} in {format_count(found.steps)} steps and "
                f"{format_seconds(found.seconds)}."
            ),
            object=found.example,
            site=evidence.places.frames[found.group],
            stack=evidence.places.stack(found.site),
            slope_bytes_per_s=(found.last_bytes - found.first_bytes) / max(1e-3, found.seconds),
        )
        for found in evidence.enlargements
    ]


def without_one_long_graph(resident: Resident, recording: Recording) -> Resident:
    """What the samples say, without records that pile up for a pass that is still to come."""
    if all(rise.kind != "tape" for rise in resident.rises):
        return resident
    if len(recording.passes) >= FEWEST_PASSES:
        return resident
    rises = tuple(rise for rise in resident.rises if rise.kind != "tape")
    return replace(resident, rises=rises)


def rises_that_count(evidence: Evidence) -> list[Rise]:
    """Growth outside arrays that growing arrays, or what is garbage, do not bring with them."""
    brought = brought_along(evidence)
    return [rise for rise in evidence.resident.rises if rise.bytes > brought]


def brought_along(evidence: Evidence) -> int:
    """Up to how many bytes outside arrays grow with those that do, or that are garbage."""
    garbage = (*evidence.garbage, *evidence.unclear)
    arrays = max(evidence.garbage_arrays, sum(found.count for found in garbage))
    garbage = (*garbage, *evidence.filling)
    arrays += sum(found.count for found in evidence.filling)
    arrays += sum(growth.survivors for growth in evidence.growths)
    held = sum(growth.bytes for growth in evidence.growths)
    held += sum(found.bytes for found in garbage)
    return max(held, arrays * PYTHON_BYTES_PER_ARRAY)


def resident_findings(evidence: Evidence) -> list[Finding]:
    """Findings about memory that belongs to no line."""
    found = []
    for rise in rises_that_count(evidence):
        kind, sentence = RISE_KINDS[rise.kind]
        found.append(
            Finding(
                kind=kind,
                severity="warning",
                count=0,
                bytes=rise.bytes,
                evidence=sentence.format(
                    bytes=format_bytes(rise.bytes),
                    seconds=format_seconds(rise.seconds),
                    rate=rise.rate.per_second(),
                    since=format_seconds(max(0.0, (rise.since_ns - evidence.lives.begin_ns) / 1e9)),
                ),
                slope_bytes_per_s=rise.rate.value,
                slope_low_bytes_per_s=rise.rate.low,
                slope_high_bytes_per_s=rise.rate.high,
                grew_from_ns=rise.since_ns,
                grew_until_ns=rise.since_ns + round(rise.seconds * 1e9),
            )
        )
    retained = evidence.resident.retained
    if retained.bytes:
        found.append(
            Finding(
                kind="retained",
                severity="warning",
                count=0,
                bytes=retained.bytes,
                evidence=(
                    f"{format_bytes(retained.bytes)} that the program freed stayed resident for "
                    f"{format_seconds(retained.seconds)}: {retained.by}."
                ),
            )
        )
    return found


def judge(evidence: Evidence) -> Verdict:
    """The verdict; a doubt is never a pass."""
    hole = evidence.recording.missing_events
    if hole:
        return Verdict(
            "cannot-judge",
            f"Cannot judge: {format_count(hole)} events are missing from the middle of the "
            "recording, and what seems alive may have been freed there; record the program again.",
        )
    if evidence.growths:
        worst = growth_findings(evidence)[0]
        others = len({growth.group for growth in evidence.growths}) - 1
        more = f" ({others} more line{'s' if others > 1 else ''} grow{'' if others > 1 else 's'}.)"
        return Verdict(
            "leak",
            f"Leak: {worst.evidence}{more if others else ''}",
            sum(growth.rate.value for growth in evidence.growths),
            sum(growth.bytes for growth in evidence.growths),
            sum(growth.rate.low for growth in evidence.growths),
            sum(growth.rate.high for growth in evidence.growths),
        )
    for rise in [] if evidence.recording.lost_events else rises_that_count(evidence):
        sentence = resident_findings(evidence)[0].evidence
        outcome = "leak" if rise.kind == "tape" else rise.kind
        return Verdict(
            outcome,
            f"{outcome.capitalize()}: {sentence}",
            rise.rate.value,
            rise.bytes,
            rise.rate.low,
            rise.rate.high,
        )
    doubt = reason_not_to_judge(evidence)
    if doubt:
        return Verdict("cannot-judge", f"Cannot judge: {doubt}")
    if evidence.resident.retained.bytes:
        return Verdict("retained", f"Retained: {resident_findings(evidence)[0].evidence}", 0.0, 0)
    seconds = format_seconds(evidence.lives.run_seconds)
    resolution = evidence.resident.resolution_bytes_per_s
    larger = [finding.evidence for finding in enlargement_findings(evidence)[:1]]
    return Verdict(
        "stable",
        " ".join(
            [
                f"Stable: in {seconds} no line keeps ever more arrays, and neither Python's heap "
                "nor native memory grows.",
                *waiting(evidence.garbage),
                *seen(resolution),
                *larger,
                *(finding.evidence for finding in evidence.mapped[:1]),
            ]
        ),
        0.0,
        0,
        resolution_bytes_per_s=resolution,
    )


def seen(resolution: float | None) -> list[str]:
    """How small a growth would have been seen, as a sentence; none when that is not known."""
    if resolution is None:
        return []
    return [
        f"Seen would have been {FEW_SURVIVORS} arrays of one line, kept evenly through the run "
        f"({FEWEST_SURVIVORS} with {format_bytes(LEAST_BYTES_OF_FEW)} together), or native memory "
        f"that grows steadily by {format_rate(resolution)}."
    ]


def waiting(garbage: list[Finding]) -> list[str]:
    """How much waits for Python's garbage collector, as a sentence."""
    if not garbage:
        return []
    count, held = sum(found.count for found in garbage), sum(found.bytes for found in garbage)
    return [
        f"Garbage in reference cycles, {format_count(count)} arrays of {format_bytes(held)}, waits "
        "for Python's garbage collector, which is on."
    ]


def reason_not_to_judge(evidence: Evidence) -> str:
    """Why finding nothing means nothing, as a sentence; empty when it means something."""
    recording, seconds = evidence.recording, evidence.lives.run_seconds
    if recording.lost_events:
        why = recording.info.get("stopped", "")
        reason = f" because {why}" if why else ""
        return (
            f"{format_count(recording.lost_events)} events were lost{reason}, so an object that "
            "seems alive may have been freed; give the recording more room and run it again."
        )
    if recording.problems:
        return (
            "no line keeps ever more arrays in what could be read, but parts of the recording are "
            f"missing: {recording.problems[0]}."
        )
    if evidence.unclear:
        return (
            f"{evidence.unclear[0].evidence[:-1]}; run it for longer, or call tlmem.mark() or "
            "tlmem.snapshot() in its loop."
        )
    if evidence.filling:
        return f"{evidence.filling[0].evidence[:-1]}; run it for longer."
    if seconds < SHORTEST_RUN_S:
        return (
            f"the run lasted {format_seconds(seconds)} and no line kept {MANY_SURVIVORS} arrays "
            f"evenly; run it for {format_seconds(0.2)} or longer."
        )
    if not evidence.resident.judged:
        return (
            "no line keeps ever more arrays, but there are too few samples of resident memory to "
            "speak for the rest; record with a shorter --rss-interval or for longer."
        )
    late = evidence.unsettled
    if late is not None and late.bytes > brought_along(evidence):
        return (
            f"{late.name} rose by {format_bytes(late.bytes)} in the last "
            f"{format_seconds(late.seconds)} and to the end, too briefly to tell a leak from a "
            "result that is made at last; run it for longer."
        )
    return ""
