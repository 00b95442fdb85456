"""Tables of devices, ops, backward passes and sampled heap, as they are shown.

Covers: rows of text under heads. Does not cover: pools (``pools``), scopes (``scopes``), curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlmem.analysis.model import HeldHeap
from tlmem.analysis.places import place
from tlmem.events import DEVICE_NAMES
from tlmem.recording.reader import Recording
from tlmem.report.heap import HEAP_NAMES, lines_left_out, range_of
from tlmem.units import format_bytes, format_count, format_seconds

from .view import View

MOST_ROWS = 1000


@dataclass(frozen=True)
class TableData:
    """A table: heads, which of them stand over numbers, rows of as many texts; what it is of."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: tuple[str, ...]
    note: str = ""


def devices(recording: Recording) -> TableData:
    """What the drivers of devices handed out."""
    rows = []
    for row in recording.devices.to_dict("records"):
        rows.append(
            (
                str(row["name"]) or DEVICE_NAMES.get(int(row["device"]), ""),
                *(format_count(row[name]) for name in ("alloc_count", "free_count", "live_count")),
                *(format_bytes(row[name]) for name in ("alloc_bytes", "live_bytes")),
                "–" if np.isnan(row["driver_bytes"]) else format_bytes(row["driver_bytes"]),
            )
        )
    heads = ("device", "blocks", "freed", "held", "bytes", "bytes held", "in the driver")
    return TableData(heads, rows, heads[1:])


def ops(recording: Recording) -> TableData:
    """Ops that tapes recorded, those that still hold most first."""
    table = recording.ops.sort_values(
        ["held_bytes", "saved_bytes", "records"], ascending=False, kind="stable"
    )
    rows = [
        (
            str(row["name"]),
            format_count(row["records"]),
            format_count(row["saves"]),
            format_bytes(row["saved_bytes"]),
            format_count(row["held_count"]) if row["held_count"] else "",
            format_bytes(row["held_bytes"]) if row["held_bytes"] else "",
        )
        for row in table.to_dict("records")
    ]
    heads = ("op", "recorded", "saved", "bytes saved", "still held", "bytes held")
    return TableData(heads, rows, heads[1:])


def passes(recording: Recording, view: View) -> TableData:
    """Backward passes that began in the stretch, in order."""
    table = recording.passes
    numbered = table.assign(number=np.arange(1, len(table) + 1))
    begin = numbered["begin_ns"]
    inside = numbered[(begin >= view.start_ns) & (begin <= view.stop_ns)]
    rows = []
    for row in inside[:MOST_ROWS].to_dict("records"):
        status = int(row["status"])
        under_way = row["end_ns"] < 0
        length = "" if under_way else duration((row["end_ns"] - row["begin_ns"]) / 1e9)
        ending = "under way" if under_way else "whole" if status == 0 else f"failed ({status})"
        rows.append(
            (
                format_count(row["number"]),
                f"{row['begin_ns'] / 1e9:.6f}",
                length,
                format_count(row["recorded"]),
                format_count(row["rules"]),
                format_bytes(row["saved_bytes"]),
                format_bytes(row["left_bytes"]) if row["left_bytes"] >= 0 else "",
                ending,
            )
        )
    heads = (
        "pass",
        "at s",
        "duration",
        "ops before",
        "rules",
        "held before",
        "held after",
        "ended",
    )
    note = f"{format_count(len(inside))} passes"
    note += f", the first {format_count(MOST_ROWS)} listed" if len(inside) > MOST_ROWS else ""
    return TableData(heads, rows, heads[:-1], note)


def sampled_heap(found: Sequence[HeldHeap]) -> TableData:
    """Lines that hold sampled heap when the program is judged; empty without samples."""
    rows, notes = [], []
    for held in found:
        for line in held.lines:
            about = line.about
            rows.append(
                (
                    HEAP_NAMES[held.memory],
                    about.sign + format_bytes(about.bytes),
                    range_of(about),
                    about.sign + format_count(about.count),
                    f"{place(line.site)} {line.site.function}",
                )
            )
        left_out = lines_left_out(held, len(held.lines))
        notes += [f"and {left_out}"] if left_out else []
    heads = ("sampled heap when judged", "bytes", "95% interval", "blocks", "line")
    return TableData(heads, rows, heads[1:4], ", ".join(notes))


def duration(seconds: float) -> str:
    """A duration, in microseconds where it is shorter than one millisecond."""
    return f"{seconds * 1e6:.3g} µs" if 0 <= seconds < 0.0009995 else format_seconds(seconds)
