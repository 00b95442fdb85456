"""What another allocator would have reserved: ``tlmem replay``, as text and as JSON.

Covers: how well the replay was proven, the table of settings, which lines strand segments, a
picture of characters, and how all of it is written. Does not cover: replaying, which is handed in;
the picture (``plots.segments``), the page (``html.replay``). See also: docs/how-to/replay.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.analysis.places import place
from tlmem.report.json import document, frame_dict
from tlmem.report.text import wrap
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording
    from tlmem.replaying.answers import Answer
    from tlmem.replaying.cuda import Figures
    from tlmem.replaying.layout import Layout
    from tlmem.replaying.proof import Proof
    from tlmem.replaying.stranded import Keeper, Stranded
    from tlmem.replaying.trace import Trace

SCHEMA = 1
MOST_SHOWN = 8
PICTURE_ROWS, PICTURE_COLUMNS = 12, 64
ALLOCATORS = {
    "cuda": "PyTorch's caching allocator for CUDA, as a simulator",
    "pool": "tlmem's own buffers, the code itself",
}
SHADES = " .:-=+*#"
"""Of reserved memory in the picture, by how much of it is in blocks; a blank is not reserved."""
LEGEND = (
    "stranded: bytes free in segments that would be free as a whole without this line; shared: "
    "bytes free in segments that other lines keep as well."
)


@dataclass(frozen=True)
class Replayed:
    """What was found. ``answers`` begin with the recorded setting, or the default one; ``best`` is
    one of them when several were tried. ``bound_bytes`` is that of ``tlmem plan``. ``stranded`` are
    at the peak and at the end, under the setting ``shown``; None for pools, as is ``layout``.
    """

    recording: Recording
    trace: Trace
    allocator: str
    proof: Proof | None
    answers: tuple[Answer, ...]
    best: Answer | None
    bound_bytes: int
    shown: str
    stranded: tuple[Stranded, Stranded] | None
    layout: Layout | None
    problems: tuple[str, ...] = ()


def render_text(found: Replayed) -> str:
    """The report for people, with a line feed at its end."""
    return "\n\n".join(blocks(found)) + "\n"


def blocks(found: Replayed) -> Iterator[str]:
    """Paragraphs and tables, the most important first."""
    yield "\n".join(wrap(sentence) for sentence in summary(found))
    yield answers_block(found)
    lines = list(advice(found))
    if lines:
        yield "\n".join(lines)
    if found.stranded is not None:
        yield from stranded_blocks(found)
    if found.layout is not None:
        yield picture_block(found.layout)
    notes = list(remarks(found))
    if notes:
        yield "\n".join(wrap(note) for note in notes)


def summary(found: Replayed) -> Iterator[str]:
    """What was replayed, and how well that was proven."""
    trace = found.trace
    events = trace.changes
    yield (
        f"Replayed {format_count(events)} allocations and frees of {trace.memory} "
        f"({format_count(trace.blocks)} blocks) through "
        f"{ALLOCATORS[found.allocator]}."
    )
    if found.allocator == "cuda":
        yield proof_sentence(found)


def all_or(count: int, of: int) -> str:
    """``all``, or how many of how many."""
    return "all" if count == of else f"{format_count(count)} of {format_count(of)}"


def proof_sentence(found: Replayed) -> str:
    """How near the replay came to the recorded allocator."""
    proof = found.proof
    if proof is None and found.trace.imported:
        return (
            "Not proven: the snapshot has no segments, so what the real allocator reserved is not "
            "known."
        )
    if proof is None:
        return (
            "Not compared with a real allocator: the recording has none. What was allocated is "
            "replayed as if it lay on a device."
        )
    words = (
        f"Reproduces the recorded run within {percent(proof.error)}: reserved "
        f"{format_bytes(proof.replayed_peak)} at the peak, the recorded allocator had "
        f"{format_bytes(proof.recorded_peak)} ({format_count(proof.compared)} moments compared; "
        f"{all_or(proof.placed, proof.compared)} blocks lie where they lay)"
    )
    if proof.largest > proof.error:
        words += f"; at one moment they differ by {percent(proof.largest)} of the peak"
    return f"{words}."


def percent(share: float) -> str:
    """``0.4%``; what is not zero is not written as zero."""
    if share == 0:
        return "0%"
    return f"{max(0.1, 100 * share):.1f}%"


def answers_block(found: Replayed) -> str:
    """The table of settings."""
    width = max(22, *(len(label(each)) for each in found.answers))
    rows = [
        f"{'setting':<{width}}  {'reserved':>10}  {'smallest device':>15}  {'segments':>8}  "
        f"{'retries':>7}"
    ]
    for each in found.answers:
        mark = "*" if each is found.best else " "
        rows.append(
            f"{label(each):<{width}} {mark}{format_bytes(each.roomy.peak_reserved_bytes):>10}  "
            f"{format_bytes(each.smallest_bytes):>15}  "
            f"{format_count(each.roomy.driver_allocs):>8}  {format_count(each.tight.retries):>7}"
        )
    rows += [
        wrap(
            "reserved: at its peak on a roomy device, where nothing is refused; smallest device: "
            "on which the run completes, as on every larger one that was tried, with so many "
            "retries; segments: times that the driver gave memory on the roomy device.",
            "  ",
        ),
        wrap(
            f"At once {format_bytes(found.trace.peak_requested)} were asked for. A plan of "
            f"offsets needs at least {format_bytes(found.bound_bytes)} (tlmem plan).",
            "  ",
        ),
    ]
    return "\n".join(rows)


def label(each: Answer) -> str:
    """A setting in the table."""
    return f"{each.settings.name} (recorded)" if each.is_recorded else each.settings.name


def advice(found: Replayed) -> Iterator[str]:
    """The line to copy."""
    best, first = found.best, found.answers[0]
    if best is None or found.allocator != "cuda":
        return
    saved = first.smallest_bytes - best.smallest_bytes
    roomy = first.roomy.peak_reserved_bytes - best.roomy.peak_reserved_bytes
    if best is first or (saved <= first.within_bytes and roomy <= 0):
        yield f"No setting that was tried needs less than {label(first)}."
        return
    yield f"Least: export PYTORCH_ALLOC_CONF={best.settings.conf}"
    words = []
    if saved > first.within_bytes:
        words.append(f"{format_bytes(saved)} less on the smallest device")
    if roomy > 0:
        words.append(f"{format_bytes(roomy)} less reserved on a roomy one")
    yield f"  {' and '.join(words)} than {label(first)}; what retries cost in time is not modelled"


def stranded_blocks(found: Replayed) -> Iterator[str]:
    """Who keeps segments, at the peak and at the end."""
    assert found.stranded is not None
    for title, at in zip(("At the peak", "At the end"), found.stranded, strict=True):
        unit = "pages" if at.pages else "segments"
        rows = [
            wrap(
                f"{title} ({found.shown}), {format_seconds(at.time_ns / 1e9)} after the start: "
                f"reserved {format_bytes(at.reserved_bytes)} = blocks "
                f"{format_bytes(at.block_bytes)} + stranded {format_bytes(at.stranded_bytes)} + "
                f"whole free {unit} {format_bytes(at.whole_free_bytes)}; "
                f"{format_count(at.held)} of {format_count(at.segments)} {unit} "
                f"{'is' if at.held == 1 else 'are'} free in part"
            )
        ]
        if at.lines:
            rows.append(
                f"{'stranded':>10} {'shared':>10} {unit:>9} {'blocks':>8} {'bytes':>10}  line"
            )
            rows += [line for each in at.lines[:MOST_SHOWN] for line in keeper_rows(each)]
            hidden = len(at.lines) - MOST_SHOWN + at.hidden_lines
            if hidden > 0:
                rows.append(f"  and {format_count(hidden)} more lines")
            rows.append(wrap(LEGEND, "  "))
        yield "\n".join(rows)


def keeper_rows(each: Keeper) -> Iterator[str]:
    """One line that keeps segments, and who holds its blocks."""
    yield (
        f"{format_bytes(each.stranded_bytes):>10} {format_bytes(each.shared_bytes):>10} "
        f"{format_count(each.segments):>9} {format_count(each.count):>8} "
        f"{format_bytes(each.bytes):>10}  {place(each.site)} {each.site.function}".rstrip()
    )
    if each.modules:
        yield f"{'':>53}in {', '.join(each.modules)}"
    if each.holders:
        yield f"{'':>53}held by {', '.join(each.holders)}"


def picture_block(layout: Layout) -> str:
    """Addresses upwards, time to the right."""
    reserved, used = layout.used(PICTURE_ROWS, PICTURE_COLUMNS)
    share = np.divide(used, reserved, out=np.zeros_like(used), where=reserved > 0)
    level = np.clip(np.round(share * (len(SHADES) - 2)).astype(int) + 1, 1, len(SHADES) - 1)
    level[reserved < 0.5 / PICTURE_ROWS] = 0
    rows = [
        f"Addresses against time, {format_bytes(layout.top)} high; . is reserved and free, # in use"
    ]
    rows += [f"  |{''.join(SHADES[n] for n in row)}|" for row in level[::-1]]
    first, last = layout.time_ns[layout.first], layout.time_ns[layout.last - 1]
    begin, end = format_seconds(int(first) / 1e9), format_seconds(int(last) / 1e9)
    rows.append(f"   {begin}{end:>{max(1, PICTURE_COLUMNS - len(begin))}}")
    return "\n".join(rows)


def remarks(found: Replayed) -> Iterator[str]:
    """What a reader has to know beside the numbers, a sentence each."""
    trace = found.trace
    if trace.older and found.proof is not None:
        yield (
            f"{format_count(trace.older)} blocks are older than the trace. The comparison starts "
            "from the recorded segments; each setting starts from an empty device, with these "
            "blocks in the order of their addresses."
        )
    elif trace.older:
        yield (
            f"{format_count(trace.older)} blocks are older than the events: each setting starts "
            "with them, in the order of their addresses."
        )
    if found.recording.fold is not None:
        totals = found.recording.totals
        higher = totals.peak_bytes > trace.peak_requested
        yield (
            f"Of events before {format_seconds(found.recording.horizon_ns / 1e9)} only sums are "
            "known, so they are not replayed"
            + (f"; their peak was {format_bytes(totals.peak_bytes)}." if higher else ".")
        )
    if found.allocator == "cuda":
        if any(each.settings.conf.find("garbage_collection") >= 0 for each in found.answers):
            yield (
                "garbage_collection_threshold acts only on a device of limited size, in programs "
                "after torch.cuda.set_per_process_memory_fraction."
            )
        yield (
            "A device needs more than this: the CUDA context and what libraries such as cuBLAS and "
            "NCCL allocate by themselves are not in the recording."
        )
    for memory, held in trace.others.items():
        yield (
            f"Memory {memory}, with at most {format_bytes(held)} at once, is another device: "
            f"--memory {memory} replays it."
        )
    if not found.recording.sealed:
        yield "The recording has no end: what was not freed by then stays allocated."
    yield from (f"problem: {problem}" for problem in found.problems)


# ---- JSON ----


def render_json(found: Replayed) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(found))


def to_dict(found: Replayed) -> dict[str, Any]:
    """A replay as plain dicts, lists, texts and numbers."""
    recording, trace, best = found.recording, found.trace, found.best
    is_cuda = found.allocator == "cuda"
    return {
        "schema": SCHEMA,
        "recording": {
            "path": str(recording.path),
            "complete": recording.complete,
            "problems": list(recording.problems),
        },
        "allocator": found.allocator,
        "memory": trace.memory,
        "other_memories": [{"memory": name, "peak_bytes": n} for name, n in trace.others.items()],
        "events": trace.changes,
        "blocks": trace.blocks,
        "older_blocks": trace.older,
        "lanes": [
            {"stream": stream, "pool": [owner, number]}
            for stream, owner, number in trace.lanes
            if stream >= 0  # of one segment alone
        ],
        "proof": proof_dict(found.proof),
        "requested_peak_bytes": trace.peak_requested,
        "plan_bound_bytes": found.bound_bytes,
        "answers": [answer_dict(each) for each in found.answers],
        "best": None if best is None else found.answers.index(best),
        "conf": best.settings.conf if best is not None and is_cuda else None,
        "stranded": None
        if found.stranded is None
        else {
            "setting": found.shown,
            "at_peak": stranded_dict(found.stranded[0]),
            "at_end": stranded_dict(found.stranded[1]),
        },
        "problems": list(found.problems),
    }


def proof_dict(proof: Proof | None) -> dict[str, Any] | None:
    """How well the replay was proven."""
    if proof is None:
        return None
    return {
        "error": proof.error,
        "largest_difference": proof.largest,
        "recorded_peak_bytes": proof.recorded_peak,
        "replayed_peak_bytes": proof.replayed_peak,
        "compared": proof.compared,
        "placed": proof.placed,
    }


def answer_dict(each: Answer) -> dict[str, Any]:
    """One setting."""
    return {
        "setting": each.settings.name,
        "conf": each.settings.conf,
        "recorded": each.is_recorded,
        "reserved_peak_bytes": each.roomy.peak_reserved_bytes,
        "smallest_device_bytes": each.smallest_bytes,
        "within_bytes": each.within_bytes,
        "roomy": figures_dict(each.roomy),
        "smallest": figures_dict(each.tight),
    }


def figures_dict(figures: Figures) -> dict[str, int]:
    """What was counted on one device."""
    return {
        "reserved_peak_bytes": figures.peak_reserved_bytes,
        "reserved_bytes": figures.reserved_bytes,
        "segments_allocated": figures.driver_allocs,
        "segments_freed": figures.driver_frees,
        "segments": figures.segments,
        "retries": figures.retries,
        "collections": figures.collections,
    }


def stranded_dict(at: Stranded) -> dict[str, Any]:
    """Who keeps segments at one moment."""
    return {
        "seconds": round(at.time_ns / 1e9, 9),
        "reserved_bytes": at.reserved_bytes,
        "block_bytes": at.block_bytes,
        "stranded_bytes": at.stranded_bytes,
        "whole_free_bytes": at.whole_free_bytes,
        "segments": at.segments,
        "segments_free_in_part": at.held,
        "pages": at.pages,
        "lines": [
            {
                "site": frame_dict(each.site if each.site.file else None),
                "count": each.count,
                "bytes": each.bytes,
                "segments": each.segments,
                "segments_alone": each.alone,
                "stranded_bytes": each.stranded_bytes,
                "shared_bytes": each.shared_bytes,
                "object": each.object,
                "modules": list(each.modules),
                "holders": list(each.holders),
            }
            for each in at.lines
        ],
    }
