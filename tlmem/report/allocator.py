"""What a caching allocator had reserved, as a sum whose parts are exact: of imported snapshots.

Covers: the block of the text report, the same for JSON. Does not cover: where the figures come from
(``recording.tables.segments``), blocks over time, which are objects like any other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tlmem.analysis.lifetimes import is_imported
from tlmem.events import OUT_OF_MEMORY
from tlmem.recording.format.allocator_state import PINNED_HOST
from tlmem.recording.reader import Recording
from tlmem.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    import pandas as pd

REMARK = "snapshot.remark."
"""Notes about what a snapshot has beside memory begin with it."""
MOST_POOLS = 5
MOST_FAILURES = 3
SUM = {
    "requested_bytes": "live",
    "rounding_bytes": "rounding",
    "waiting_bytes": "freed, in use by another stream",
    "split_free_bytes": "free inside used segments",
    "whole_free_bytes": "whole free segments",
}
"""Columns of ``segments`` that add up to ``total_bytes``, and their names."""
ALWAYS = ("requested_bytes", "rounding_bytes", "split_free_bytes", "whole_free_bytes")
FIGURES = ("base", "base_requested", "peak", "peak_requested", "peak_ns", "entries", "base_blocks")


@dataclass(frozen=True)
class Reserved:
    """What one accelerator had reserved, in bytes; a ``total`` that is the sum of its ``parts``."""

    total: int
    parts: dict[str, int]

    @property
    def sentence(self) -> str:
        """``reserved 61.1 GB = live 54.6 GB + rounding 280 MB + ...``."""
        shown = [
            f"{SUM[name]} {format_bytes(size)}"
            for name, size in self.parts.items()
            if size or name in ALWAYS
        ]
        return f"reserved {format_bytes(self.total)} = {' + '.join(shown)}"


@dataclass(frozen=True)
class Allocator:
    """One accelerator of a snapshot; ``figures`` are those of its trace."""

    accelerator: int
    name: str
    reserved: Reserved
    segments: int
    blocks: int
    largest_free_bytes: int
    pools: tuple[tuple[str, Reserved], ...]
    figures: dict[str, int]


def allocators(recording: Recording) -> list[Allocator]:
    """Every accelerator that a snapshot had something of; empty for other recordings."""
    if not is_imported(recording):
        return []
    segments, blocks = recording.segments, recording.blocks
    keys = [key.removeprefix("snapshot.") for key in recording.info if key.startswith("snapshot.")]
    numbers = {int(key) for key in keys if key.isdecimal() and len(key) < 4}
    found = []
    for number in sorted(numbers | set(segments["accelerator"].tolist())):
        mine = segments[segments["accelerator"] == number]
        free = blocks[(blocks["accelerator"] == number) & (blocks["state"] == "free")]
        pools = [
            (pool_name(key), reserved_of(rows))
            for key, rows in mine.groupby(["pool_owner", "pool_number", "stream"])
        ]
        pools.sort(key=lambda pool: -pool[1].total)
        found.append(
            Allocator(
                accelerator=number,
                name=accelerator_name(recording.info, number),
                reserved=reserved_of(mine),
                segments=len(mine),
                blocks=int(mine["blocks"].sum()),
                largest_free_bytes=int(free["size_bytes"].max()) if len(free) else 0,
                pools=tuple(pools),
                figures=figures_of(recording.info.get(f"snapshot.{number}", "")),
            )
        )
    return found


def accelerator_name(info: dict[str, str], number: int) -> str:
    """``cuda:0``; of pinned memory of the host what it is."""
    kind = info.get(f"accelerator.{number}", "").split(" ")[0] or "accelerator"
    return "pinned host memory" if number == PINNED_HOST else f"{kind}:{number}"


def reserved_of(segments: pd.DataFrame) -> Reserved:
    """The sums of some segments."""
    return Reserved(
        int(segments["total_bytes"].sum()), {name: int(segments[name].sum()) for name in SUM}
    )


def pool_name(key: tuple[Hashable, ...]) -> str:
    """A pool in words, by its two numbers and its stream; streams have pools of their own."""
    owner, number, stream = key
    pool = f"private pool ({owner}, {number})" if owner or number else "default pool"
    return f"{pool}, stream {stream}"


def figures_of(note: str) -> dict[str, int]:
    """The numbers of a note ``base=1 peak=2``; 0 where one is missing or is not a number."""
    pairs = dict(pair.split("=", 1) for pair in note.split() if "=" in pair)
    return {
        name: int(pairs[name]) if pairs.get(name, "").isdecimal() and len(pairs[name]) < 19 else 0
        for name in FIGURES
    }


def allocator_lines(recording: Recording) -> list[str]:
    """What the text report says of each accelerator, a sentence each, below a title."""
    lines = []
    for found in allocators(recording):
        lines.append(f"{found.name}: {found.reserved.sentence}")
        if not found.segments:
            lines[-1] = f"{found.name}: the snapshot has no segments, so reserved memory is unknown"
        else:
            lines.append(
                f"{counted(found.segments, 'segment')} in {counted(found.blocks, 'block')}, "
                f"the largest free one of {format_bytes(found.largest_free_bytes)}"
            )
        lines += trace_lines(found)
        if len(found.pools) > 1:
            lines += [f"{name}: {pool.sentence}" for name, pool in found.pools[:MOST_POOLS]]
            more = len(found.pools) - MOST_POOLS
            lines += [f"and {more} more pool{'s' if more > 1 else ''}"] if more > 0 else []
    if recording.info.get("snapshot.clock") == "entries":
        lines.append("the trace has no times: a millisecond stands for each entry")
    lines += [text for key, text in recording.info.items() if key.startswith(REMARK)]
    return [*lines, *failure_lines(recording)]


def trace_lines(found: Allocator) -> list[str]:
    """The peak in the trace, and what is older than it."""
    of = found.figures
    if not of["entries"]:
        return ["the snapshot has no trace of it: what was allocated when is unknown"]
    older = (
        f"; {format_bytes(of['base'])} in {counted(count, 'block')} older than the trace"
        if (count := of["base_blocks"])
        else ""
    )
    return [
        f"peak in its {counted(of['entries'], 'trace entry')}: {format_bytes(of['peak'])} in "
        f"blocks, {format_bytes(of['peak_requested'])} asked for, after "
        f"{format_seconds(of['peak_ns'] / 1e9)}{older}"
    ]


def failure_lines(recording: Recording) -> list[str]:
    """Where memory ran out, the latest times last."""
    if not is_imported(recording):
        return []
    marks = recording.marks
    marks = marks[marks["label"].str.startswith(OUT_OF_MEMORY)] if len(marks) else marks
    lines = []
    for label, time_ns, site in zip(
        marks["label"].tolist()[-MOST_FAILURES:],
        marks["time_ns"].tolist()[-MOST_FAILURES:],
        marks["site"].tolist()[-MOST_FAILURES:],
        strict=True,
    ):
        frame = recording.blame(int(site))
        where = f" at {frame['file']}:{frame['line']}" if frame and frame["file"] else ""
        lines.append(f"{label}, after {format_seconds(time_ns / 1e9)}{where}")
    earlier = len(marks) - len(lines)
    return [*([f"out of memory {earlier} more times before"] if earlier > 0 else []), *lines]


def allocator_dicts(recording: Recording) -> list[dict[str, Any]]:
    """The same for JSON, in bytes."""
    made = []
    for found in allocators(recording):
        about = asdict(found)
        about["reserved"] = {"total_bytes": found.reserved.total, **found.reserved.parts}
        about["pools"] = [
            {"name": name, "total_bytes": pool.total, **pool.parts} for name, pool in found.pools
        ]
        figures = about.pop("figures")
        about["trace"] = {
            (name if name in ("entries", "base_blocks", "peak_ns") else f"{name}_bytes"): value
            for name, value in figures.items()
        }
        made.append(about)
    return made
