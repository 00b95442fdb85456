"""What ``tlmem replay`` prints of allocators that were run: a table, and how far it can be trusted.

Covers: the text and the JSON. Does not cover: running them (``replaying.hosts``).
See also: docs/how-to/replay.md#host-allocators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tlmem.report.json import document
from tlmem.report.replay import SCHEMA, percent
from tlmem.report.text import wrap
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording
    from tlmem.replaying.host_allocators import Allocator
    from tlmem.replaying.host_trace import HostTrace
    from tlmem.replaying.hosts import Agreement, HostAnswer


@dataclass(frozen=True)
class HostReplayed:
    """What was found. ``answers`` begin with glibc by itself, to which ``agreement`` belongs."""

    recording: Recording
    trace: HostTrace
    allocator: str
    answers: tuple[HostAnswer, ...]
    agreement: Agreement | None
    missing: tuple[Allocator, ...]

    @property
    def best(self) -> HostAnswer | None:
        """The lowest peak; of several within 1% of it the one that keeps least at the end."""
        if len(self.answers) < 2:
            return None
        least = min(each.peak_bytes for each in self.answers)
        near = [each for each in self.answers if each.peak_bytes <= 1.01 * least]
        return min(near, key=lambda each: (each.end_bytes, each.peak_bytes))


def render_text(found: HostReplayed) -> str:
    """The report for people, with a line feed at its end."""
    parts = ["\n".join(wrap(sentence) for sentence in summary(found)), table(found)]
    parts += [text for text in (advice(found),) if text]
    parts.append("\n".join(wrap(note) for note in remarks(found)))
    return "\n\n".join(parts) + "\n"


def summary(found: HostReplayed) -> Iterator[str]:
    """What was replayed, and how near that is to the recorded run."""
    trace = found.trace
    threads = "one thread" if trace.threads == 1 else f"{format_count(trace.threads)} threads"
    yield (
        f"Replayed {format_count(trace.changes)} allocations and frees of host memory "
        f"({format_count(trace.blocks)} blocks, {threads}) by running each allocator."
    )
    near = found.agreement
    if near is None:
        why = trace.no_comparison or "resident memory did not grow"
        yield f"Not compared with the recorded run: {why}."
        return
    words = (
        f"the recorded run grew by {format_bytes(near.recorded_peak)} at its peak, the replay "
        f"under glibc by {format_bytes(near.played_peak)} ({format_count(near.samples)} samples "
        f"compared, {percent(near.mean_error)} apart on average)"
    )
    if near.holds:
        yield f"Reproduces the recorded run within {percent(near.error)}: {words}."
        return
    where = ""
    if near.parting is not None:
        time_ns, recorded, played = near.parting
        where = (
            f" They part {format_seconds(time_ns / 1e9)} after the start, where the recorded run "
            f"had {format_bytes(recorded)} and the replay {format_bytes(played)}."
        )
    yield (
        f"Differs from the recorded run by {percent(near.error)}: {words}.{where} Read differences "
        f"between rows, not the figures: {_why_apart(trace)}."
    )


def _why_apart(trace: HostTrace) -> str:
    if trace.every_block:
        return (
            "memory that did not come from malloc moved, the order between threads was another "
            "one, or a hole of the heap that was too small by a little moved all that followed"
        )
    return (
        "memory that was not recorded lies between the arrays, or the program ran under another "
        "allocator; tlmem record --heap=all records every block of malloc"
    )


def table(found: HostReplayed) -> str:
    """A row for each allocator and setting."""
    best = found.best
    width = max(22, *(len(label(each)) for each in found.answers))
    rows = [f"{'allocator':<{width}}  {'peak':>10}  {'over live':>9}  {'at the end':>10}"]
    for each in found.answers:
        mark = "*" if each is best else " "
        rows.append(
            f"{label(each):<{width}} {mark}{format_bytes(each.peak_bytes):>10}  "
            f"{100 * each.overhead:>+8.1f}%  {format_bytes(each.end_bytes):>10}"
        )
    if found.agreement is not None:
        near = found.agreement
        rows.append(
            f"{'the recorded run':<{width}}  {format_bytes(near.recorded_peak):>10}  {'':>9}  "
            f"{format_bytes(near.recorded_end):>10}"
        )
    trace = found.trace
    rows.append(
        wrap(
            f"peak, at the end: resident memory, as growth since the first array; over live: the "
            f"peak above the {format_bytes(trace.live_peak)} that blocks held at most. At the "
            f"program's end they held {format_bytes(int(trace.point_live[trace.point_end]))}.",
            "  ",
        )
    )
    return "\n".join(rows)


def label(each: HostAnswer) -> str:
    """An allocator with its settings."""
    name = each.settings.name
    return each.settings.allocator.name + ("" if name == "default" else f" {name}")


def advice(found: HostReplayed) -> str:
    """The line to copy."""
    best = found.best
    if best is None:
        return ""
    first = found.answers[0]
    saved = first.peak_bytes - best.peak_bytes
    kept = first.end_bytes - best.end_bytes
    if best is first or (saved <= 0.01 * first.peak_bytes and kept <= 0.01 * first.peak_bytes):
        return "No allocator or setting that was tried needs less than glibc by itself."
    words = []
    if saved > 0.01 * first.peak_bytes:
        words.append(f"{format_bytes(saved)} less at the peak")
    if kept > 0.01 * first.peak_bytes:
        words.append(f"{format_bytes(kept)} less at the end")
    return (
        f"Least: {best.settings.command} python ...\n"
        f"  {' and '.join(words)} than glibc by itself; time is not compared"
    )


def remarks(found: HostReplayed) -> Iterator[str]:
    """What a reader has to know beside the numbers, a sentence each."""
    trace = found.trace
    what, left = "arrays and PyTorch's CPU blocks", "Python's objects, other native memory"
    if trace.heap_blocks:
        how = "all" if trace.every_block else "by samples, so only roughly,"
        what += f" and, {how} {format_count(trace.heap_blocks)} other blocks of malloc"
        left = "Python's small objects"
    yield (
        f"Only recorded memory is replayed: {what}, each written once as a whole, in the recorded "
        f"order; not {left} and mappings. The heap begins with "
        f"{format_bytes(trace.free_at_start)} of holes."
    )
    if trace.pauses_ns and any(each.settings.allocator.knows_time for each in found.answers):
        total = format_seconds(trace.pauses_ns / 1e9)
        if trace.kept_ns == 0:
            kept = "are left out (--pauses SECONDS keeps them)"
        elif trace.kept_ns >= 0.99 * trace.pauses_ns:
            kept = "are kept"
        else:
            kept = f"are shortened to {format_seconds(trace.kept_ns / 1e9)} (--pauses SECONDS)"
        yield (
            f"jemalloc and mimalloc give memory back as time passes: the program's pauses, {total} "
            f"together, {kept}, the time between them is not."
        )
    if trace.older:
        yield (
            f"{format_count(trace.older)} blocks are older than the events: each replay starts "
            "with them."
        )
    for each in found.missing:
        yield f"{each.name} is not installed: the package {each.package} has it."
    if not found.recording.sealed:
        yield "The recording has no end: what was not freed by then stays allocated."
    yield from (f"problem: {problem}" for problem in trace.problems)


# ---- JSON ----


def render_json(found: HostReplayed) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(found))


def to_dict(found: HostReplayed) -> dict[str, Any]:
    """A replay as plain dicts, lists, texts and numbers."""
    recording, trace, near, best = found.recording, found.trace, found.agreement, found.best
    return {
        "schema": SCHEMA,
        "recording": {
            "path": str(recording.path),
            "complete": recording.complete,
            "problems": list(recording.problems),
        },
        "allocator": found.allocator,
        "memory": "host",
        "events": trace.changes,
        "blocks": trace.blocks,
        "older_blocks": trace.older,
        "resizes": trace.resizes,
        "threads": trace.threads,
        "live_peak_bytes": trace.live_peak,
        "live_end_bytes": int(trace.point_live[trace.point_end]),
        "free_at_start_bytes": trace.free_at_start,
        "heap_blocks": trace.heap_blocks,
        "every_block": trace.every_block,
        "pauses": {
            "recorded_seconds": trace.pauses_ns / 1e9,
            "kept_seconds": trace.kept_ns / 1e9,
        },
        "agreement": None
        if near is None
        else {
            "error": near.error,
            "peak_error": near.peak_error,
            "mean_error": near.mean_error,
            "recorded_peak_bytes": near.recorded_peak,
            "recorded_end_bytes": near.recorded_end,
            "replayed_peak_bytes": near.played_peak,
            "samples": near.samples,
            "parting": None
            if near.parting is None
            else {
                "seconds": near.parting[0] / 1e9,
                "recorded_bytes": near.parting[1],
                "replayed_bytes": near.parting[2],
            },
        },
        "not_compared": trace.no_comparison or None,
        "answers": [answer_dict(each) for each in found.answers],
        "best": None if best is None else found.answers.index(best),
        "points": {
            "seconds": [round(int(each) / 1e9, 9) for each in trace.point_ns],
            "live_bytes": [int(each) for each in trace.point_live],
        },
        "missing": [{"allocator": each.name, "package": each.package} for each in found.missing],
        "problems": list(trace.problems),
    }


def answer_dict(each: HostAnswer) -> dict[str, Any]:
    """One allocator."""
    return {
        "allocator": each.settings.allocator.name,
        "setting": each.settings.name,
        "command": each.settings.command,
        "peak_resident_bytes": each.peak_bytes,
        "end_resident_bytes": each.end_bytes,
        "overhead": each.overhead,
        "resident_bytes": [int(value) for value in each.resident],
    }
