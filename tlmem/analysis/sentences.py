"""What is said about growth: every sentence of a verdict, and of the findings that it rests on.

A sentence says what happened, the number, and what to do.

Covers: text. Does not cover: what is true (``judge``), findings with their fields
(``growth_findings``), facts that were not seen, each with its sentence (``unseen``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlmem.analysis.growth.growing_arrays import Enlargement
from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.growth.late_rise import Unsettled
from tlmem.analysis.growth.new_sizes import NewSizes
from tlmem.analysis.growth.per_mark import Marks, step_of_line
from tlmem.analysis.growth.process_growth import ALLOCATOR, Retained, Rise
from tlmem.analysis.leaks.deep_graphs import DeepGraph
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import FULL, Finding
from tlmem.analysis.places import Places, allocated_at, place
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count, format_figure, format_rate, format_seconds

LATE_SHARE = 0.15
"""Growth that begins after this share of the time until it is judged is said to last since then."""
MANNERS = {
    "kept": "",
    "larger": ", each in place of a smaller one",
    "joined": "; each replaced a smaller one, to which new data were joined",
    "renewed": "; more and more are alive at a time, each soon in another one's place",
    "backlog": ": fewer are freed each time than were allocated",
    "beside": "; all others are freed at a younger age",
    "together": "; other lines do the same",
    FULL: " while the same work went on",
}
"""How growth hides, as part of a sentence."""
RISES = {
    "tape": (
        "Records on tapes",
        "through one backward pass after the other: a value is computed from those of all steps "
        "before it, as in total = total + loss. Add loss.item(), or detach() what goes from step "
        "to step.",
    ),
    "native": (
        "Memory outside {nouns} and Python",
        "to the end: native code (a library, an extension, ctypes) keeps what it allocates.",
    ),
    "shared": (
        "Shared memory",
        "to the end: it stays until every process has unmapped it and it is unlinked (mmap, "
        "multiprocessing.shared_memory, libraries).",
    ),
    "driver": (
        "Memory that devices hold beyond what live objects ever used at once",
        "to the end: a driver, or a pool of buffers above it, keeps what was freed and does not "
        "use it again.",
    ),
    "python": (
        "Python's heap",
        "to the end: Python objects (strings, lists, dicts, numbers) are kept, or arrays over "
        "memory that Python allocated, such as unpickled ones.",
    ),
}
"""What rises, and what that means; ``nouns`` are what the program's objects are called."""
HEADS = {
    "tape": "Leak",
    "native": "Native memory",
    "shared": "Native memory",
    "python": "Python",
    "driver": "Driver",
}
"""The outcome in words, at the begin of a verdict."""
NODES = (
    " In PyTorch that may be nodes of autograd graphs, as kept by total += loss: add loss.item()."
)
"""What else native memory may be where a program has tensors of PyTorch."""
TRIM = "malloc_trim(0) of the C library gives back the whole pages that are free."
"""What to do about freed memory that glibc keeps."""
PROFILER = " PyTorch's profiler was on: it keeps an event for each operation."
"""The same where the profiler was on."""
SNAPSHOT = (
    "The snapshot covers the blocks of PyTorch's caching allocator while its trace was recorded, "
    "not the process's other memory."
)


def leak(places: Places, lives: Lifetimes, marks: Marks, growths: Sequence[GrowingSite]) -> str:
    """``Leak at cache.py:23: 4,000 of 8,000 arrays allocated here were never freed. ...``."""
    worst = growths[0]
    others = len({growth.group for growth in growths}) - 1
    more = f" {others} more line{'s grow' if others > 1 else ' grows'}." if others else ""
    where = place(places.frames[worst.group])
    return f"Leak at {where}: {kept(lives, marks, worst, 'here')}{more}"


def growing(places: Places, lives: Lifetimes, marks: Marks, growth: GrowingSite) -> str:
    """The same of one line, as a finding."""
    return kept(lives, marks, growth, allocated_at(places.frames[growth.group]))


def kept(lives: Lifetimes, marks: Marks, growth: GrowingSite, where: str) -> str:
    """What a line keeps, how much that is, how fast it grows and since when."""
    noun = lives.noun(growth.group)
    since = max(0.0, (growth.first_ns - lives.begin_ns) / 1e9)
    seconds = (growth.judged_ns - growth.first_ns) / 1e9
    begun = f" since {format_seconds(since)}" if since > LATE_SHARE * (since + seconds) else ""
    were = "was" if growth.survivors == 1 else "were"
    return (
        f"{format_count(growth.survivors)} of {format_count(growth.made)} {noun}s allocated {where}"
        f"{called_from(growth)} {were} {how_kept(lives, growth)}{MANNERS[growth.manner]}. "
        f"{gain(growth, seconds)}{by_steps(lives, marks, growth)}{begun}."
    )


def how_kept(lives: Lifetimes, growth: GrowingSite) -> str:
    """Whether the program's own code freed most of them as it ended, or nothing did."""
    if growth.rows is None or not len(growth.rows):
        return "never freed"
    freed = np.median(lives.died[growth.rows]) <= lives.cut_ns
    return "freed only at the program's end" if freed else "never freed"


def gain(growth: GrowingSite, seconds: float) -> str:
    """By how much and how fast, as the begin of a sentence."""
    if growth.bytes == 0:
        return (
            "They have no bytes of their own (views, structs) and accumulated in "
            f"{format_seconds(seconds)}"
        )
    return f"{format_bytes(growth.bytes)} so far, growing {growth.rate.per_second()}"


def by_steps(lives: Lifetimes, marks: Marks, growth: GrowingSite) -> str:
    """What one step of the label keeps that a line follows best, as part of a sentence."""
    if growth.rows is None or len(growth.rows) == 0:
        return ""
    step = step_of_line(marks, lives.born[growth.rows], lives.size[growth.rows])
    if step is None:
        return ""
    noun = f"{lives.noun(growth.group)}{'' if step.objects == 1 else 's'}"
    return f", {format_figure(step.objects)} {noun} and {format_bytes(step.bytes)} per {step.label}"


def called_from(growth: GrowingSite) -> str:
    """What a growth is limited to, as part of a sentence: callers, nearest first, or a line."""
    if growth.inside is not None:
        return f", by {growth.inside.function} ({place(growth.inside)}),"
    return "".join(
        f"{', from ' if position else ', called from '}{place(caller)}"
        for position, caller in enumerate(growth.callers)
    ) + ("," if growth.callers else "")


def past_beside_growth(past: Sequence[Finding], grown_bytes: int) -> list[str]:
    """The largest past growth, where it exceeds the growth that goes on, as a sentence."""
    return [
        f"Larger, though it grows no more: {found.evidence}"
        for found in past[:1]
        if found.bytes > grown_bytes
    ]


def past_warning(past: Sequence[Finding]) -> list[str]:
    """The largest past growth, where it is a warning, as a sentence."""
    return [found.evidence for found in past if found.severity == "warning"][:1]


def larger(places: Places, found: Enlargement, noun: str = "array") -> str:
    """Of a line whose arrays are replaced by ever larger ones."""
    where = allocated_at(places.frames[found.group])
    each, together = f"Each {noun}", ""
    if found.values > 1:
        each, together = f"Each of {found.values} {noun}s", " together"
    return (
        f"{each} allocated {where} replaces a smaller one: from "
        f"{format_bytes(found.first_bytes)} to {format_bytes(found.last_bytes)}{together} in "
        f"{format_count(found.steps)} steps and {format_seconds(found.seconds)}."
    )


def filled(places: Places, found: Enlargement, noun: str = "array") -> str:
    """Of a line whose array is a buffer that is replaced by a larger one when it is full."""
    return (
        f"Each {noun} allocated {allocated_at(places.frames[found.group])} replaces a smaller one "
        f"that was full: from {format_bytes(found.first_bytes)} to "
        f"{format_bytes(found.last_bytes)} in {format_count(found.steps)} steps and "
        f"{format_seconds(found.seconds)}, at an even pace. If what fills it is never removed, "
        "this is a leak."
    )


def rising(rise: Rise, begin_ns: int, nouns: str = "arrays") -> str:
    """Of memory outside arrays that grows."""
    what, meaning = RISES[rise.kind]
    what = what.format(nouns=nouns.replace(" or ", ", "))
    if rise.kind == "native" and "tensors" in nouns:
        meaning += NODES
    since = format_seconds(max(0.0, (rise.since_ns - begin_ns) / 1e9))
    about = "about " if rise.sampled else ""
    return (
        f"{what} grew by {about}{format_bytes(rise.bytes)} in {format_seconds(rise.seconds)}, "
        f"{rise.rate.per_second()}, steadily since {since} and {meaning}"
    )


def verdict_of_rise(rise: Rise, begin_ns: int, nouns: str = "arrays") -> str:
    """The same as a verdict."""
    return f"{HEADS[rise.kind]}: {rising(rise, begin_ns, nouns)}"


def deep_graph(places: Places, graph: DeepGraph, rise: Rise, begin_ns: int) -> str:
    """Of native memory that grows by the nodes of one graph."""
    where = f" at {place(places.blamed_frame(graph.site))}" if graph.site > 0 else ""
    return (
        f"Leak{where}: {graph.sentence(begin_ns)} Its nodes are native memory, which grew by "
        f"{format_bytes(rise.bytes)} in {format_seconds(rise.seconds)}, {rise.rate.per_second()}."
    )


def retained(found: Retained) -> str:
    """Of freed memory that stays resident."""
    freed = f"{format_bytes(found.bytes)} that the program freed"
    trim = f" {TRIM}" if found.by == ALLOCATOR else ""
    if found.rise is None:
        return f"{freed} stayed resident for {format_seconds(found.seconds)}: {found.by}.{trim}"
    return (
        f"{freed} is still resident, and becomes more: {format_bytes(found.rise.bytes)} in "
        f"{format_seconds(found.rise.seconds)}, {found.rise.rate.per_second()}, steadily to the "
        "end. The C allocator keeps it: it cannot give back pages on which small blocks are in "
        f"use.{trim}"
    )


def retained_beside_growth(found: Retained, grown_bytes: int) -> list[str]:
    """How much more freed memory stays resident, where that exceeds what else grows."""
    grows = found.rise is not None and found.rise.bytes > grown_bytes
    return [f"Larger is what it leaves behind: {retained(found)}"] if grows else []


def verdict_of_retained(found: Retained) -> str:
    """The same as a verdict."""
    return f"Retained: {retained(found)}"


def stable(
    seconds: float,
    resolution: float | None,
    of_python: float | None = None,
    of_mapped: float | None = None,
    nouns: str = "arrays",
) -> str:
    """``No leak found in 8.5 s. Smallest leak this run could have shown: ...``.

    Args:
        seconds: how long the run was.
        resolution, of_python, of_mapped: bytes per second of native memory, of Python's heap, and
            of what libraries map for themselves, that would have been seen; None where that is not
            known, or nothing rose.
        nouns: what the program's objects are called.
    """
    found = f"No leak found in {format_seconds(seconds)}."
    if resolution is None:
        return found
    seen = [f"{format_rate(resolution)} of native memory"]
    if of_mapped is not None:
        seen.append(f"{format_rate(of_mapped)} of memory that libraries map for themselves")
    if of_python is not None:
        seen.append(f"{format_rate(of_python)} of Python objects")
    others = ", ".join([*seen[:-1], f"or {seen[-1]}"])
    return (
        f"{found} Smallest leak this run could have shown: {RULES.few_survivors:.0f} {nouns} "
        f"from one line ({RULES.fewest_survivors:.0f} with "
        f"{format_bytes(RULES.least_bytes_of_few)} together), {others}."
    )


def waiting(garbage: Sequence[Finding], nouns: str = "arrays") -> list[str]:
    """How much waits for Python's garbage collector, as a sentence."""
    if not garbage:
        return []
    count, held = sum(found.count for found in garbage), sum(found.bytes for found in garbage)
    return [
        f"{format_count(count)} {nouns} of {format_bytes(held)} in reference cycles wait for "
        "Python's garbage collector, which is on."
    ]


def garbage_beside(count: int, nouns: str = "arrays") -> str:
    """Of garbage that may hold what was not seen."""
    return (
        f"{format_count(count)} {nouns} are in reference cycles that Python's collector has not "
        "freed yet: gc.collect() shows whether it goes with them."
    )


def extended(models: Sequence[Finding]) -> list[str]:
    """How much a model has grown that is extended now and then, as a sentence."""
    if not models:
        return []
    held = format_bytes(sum(found.bytes for found in models))
    where = f" at {place(models[0].site)}" if models[0].site else ""
    return [f"A model is extended now and then: {held}{where} so far."]


def missing(events: int) -> str:
    """Why nothing is judged when events are missing from the middle."""
    return (
        f"{format_count(events)} events are missing from the middle of the recording, and what "
        "seems alive may have been freed there. Record the program again."
    )


def lost(events: int, stopped: str) -> str:
    """The same when the recorder had to stop; ``stopped`` says why, where it is known."""
    why = f" because {stopped}" if stopped else ""
    return (
        f"{format_count(events)} events were lost{why}, so an object that seems alive may have "
        "been freed. Give the recording more room and run it again."
    )


def damaged(problem: str) -> str:
    """The same of a file that is damaged or incomplete."""
    return (
        f"no line grows in what could be read, but parts of the recording are missing: {problem}."
    )


def unclear(found: Finding) -> str:
    """Of garbage that a function may have held before."""
    return (
        f"{found.evidence[:-1]}. Run it for longer, or call tlmem.mark() or tlmem.snapshot() in "
        "its loop."
    )


def filling(found: Finding) -> str:
    """Of a cache that is not full yet."""
    return f"{found.evidence[:-1]}. Run it for longer."


def with_sizes(found: NewSizes) -> str:
    """Of native memory that may be what libraries keep for each size."""
    return (
        f"Native memory grew by {format_bytes(found.rise.bytes)} in "
        f"{format_seconds(found.rise.seconds)}, while tensors came in {format_count(found.count)} "
        "sizes for the first time: libraries keep what they prepare for each size."
    )


def new_sizes(found: NewSizes) -> str:
    """The same where it is too much to pass over."""
    said = with_sizes(found)
    return f"{said[0].lower()}{said[1:-1]}. Run it until sizes come again."


def one_pass(found: Finding) -> str:
    """Of a trace that does not show what a pass leaves when it is over."""
    return f"{found.evidence} Record several whole steps."


def last_stage(found: Finding) -> str:
    """Of growth within the last stage, where too few stages before it gave back what they kept."""
    return f"{found.evidence} Record a longer run."


def more_at_a_time(found: Finding) -> str:
    """Of objects of which there are more and more, each of them new."""
    return f"{found.evidence} If their number should not grow, this is a leak."


def one_call(found: Finding) -> str:
    """Of growth within one call of a library."""
    return f"{found.evidence} Record several such calls in one run."


def short_trace(allocations: int) -> str:
    """Why nothing can be said of a snapshot's trace; empty when something can."""
    if allocations >= RULES.few_survivors:
        return ""
    if not allocations:
        return (
            "the snapshot has no allocation in its trace, so it shows what is alive and not how it "
            "came to be. Call torch.cuda.memory._record_memory_history() before the work, and take "
            "the snapshot after several steps."
        )
    return (
        f"the trace of the snapshot has {format_count(allocations)} "
        f"allocation{'s' if allocations > 1 else ''} only. Record several steps."
    )


def unsettled(late: Unsettled) -> str:
    """Of memory that still rose when the program ended."""
    return (
        f"{late.name} rose by {format_bytes(late.bytes)} in the last "
        f"{format_seconds(late.seconds)} and to the end, too briefly to tell a leak from a "
        "result that is computed last. Run it for longer."
    )
