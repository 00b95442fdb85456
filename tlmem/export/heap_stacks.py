"""Stacks of the heap that was sampled: for speedscope, and collapsed, as flame graph tools read.

Covers: estimates of bytes and blocks, alive when judged and, for speedscope, in all; native memory
and Python's objects apart. Does not cover: arrays and tensors; see ``speedscope``.
Source: https://github.com/brendangregg/FlameGraph, the input of ``flamegraph.pl``.
"""

from __future__ import annotations

from pathlib import Path

from tlmem.analysis.heap_samples import MEMORIES
from tlmem.analysis.model import StackFrame
from tlmem.errors import TlmemError
from tlmem.export import speedscope
from tlmem.recording.reader import Recording
from tlmem.report.heap import heap_folded, heap_tree
from tlmem.report.site_sums import StackTree

PROFILES = tuple(
    (f"sampled {name}: {what}, estimated", unit)
    for name in MEMORIES.values()
    for what, unit in (
        ("bytes alive when judged", "bytes"),
        ("blocks alive when judged", "none"),
        ("bytes allocated in total", "bytes"),
        ("blocks allocated in total", "none"),
    )
)
"""Name and unit of a profile for each row of ``heap_tree``."""
ALIVE_BYTES = {memory: 4 * number for number, memory in enumerate(MEMORIES)}
"""The row of each memory that collapsed stacks have."""


class NoHeapSamples(TlmemError):
    """A recording has no samples of the heap."""

    exit_code = 2


def write_speedscope(recording: Recording, place: Path) -> str:
    """Writes the profiles of sampled heap; returns what is left out."""
    made = speedscope.document_of(recording, sampled_tree(recording), PROFILES)
    return with_folded(recording, speedscope.save(*made, place))


def write_collapsed(recording: Recording, place: Path) -> str:
    """Writes a line for each stack: frames from the outermost on, then the bytes alive."""
    tree = sampled_tree(recording)
    rows, left_out = [], 0
    for memory, measure in ALIVE_BYTES.items():
        nodes, more = speedscope.shown_stacks(tree, measure, speedscope.MOST_FRAMES)
        left_out += more
        for path in sorted(tree.path(node) for node in nodes):
            frames = [f"sampled {MEMORIES[memory]}", *(frame_name(tree.frames[n]) for n in path)]
            rows.append(f"{';'.join(frames)} {tree.values[measure, path[-1]]}\n")
    place.write_text("".join(rows), encoding="utf-8", errors="backslashreplace")
    return with_folded(recording, speedscope.left_out_sentence(left_out))


def frame_name(frame: StackFrame) -> str:
    """``function (file.py:10)``, without what ends a frame or a line."""
    where = f" ({frame.file}:{frame.line})" if frame.file else ""
    return " ".join(f"{frame.function or '?'}{where}".replace(";", ":").split())


def with_folded(recording: Recording, left_out: str) -> str:
    """What is left out, and what is not known of folded samples."""
    return " ".join(part for part in (left_out, heap_folded(recording)) if part)


def sampled_tree(recording: Recording) -> StackTree:
    """The tree of stacks with estimates.

    Raises:
        NoHeapSamples: the recording has none.
    """
    if not len(recording.heap):
        raise NoHeapSamples(
            f"{recording.path} has no samples of the heap here; "
            "record with --heap, or choose another time."
        )
    return heap_tree(recording)
