"""A checkpoint: exact sums and the live set of events that are gone from the file.

Covers: finding the checkpoint in force, its sections.
Does not cover: how the events that remain continue it (``pairing``, ``tables``).
See also: docs/format.md, "Fold".
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from tlmem.events import EVENT_DTYPE
from tlmem.recording.format.blocks import BadBlock, BlockHeader, entries, parse_header
from tlmem.recording.format.pairing import Known
from tlmem.recording.format.segments import Source

TOTALS, SITES, THREADS, SAMPLES, MARKS, LIVE = range(6)
SITE_DTYPE = np.dtype(
    [
        ("alloc_count", "<u8"),
        ("alloc_bytes", "<u8"),
        ("freed_count", "<u8"),
        ("freed_bytes", "<u8"),
        ("free_calls", "<u8"),
        ("first_ticks", "<u8"),
        ("site", "<u4"),
        ("device", "<u4"),
    ]
)
THREAD_DTYPE = np.dtype([("consumed", "<u8"), ("thread", "<u8")])
SAMPLE_DTYPE = np.dtype([("ticks", "<u8"), ("metric", "<u8"), ("value", "<u8")])
LIVE_DTYPE = np.dtype(
    [
        ("number", "<u8"),
        ("ticks", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("site", "<u4"),
        ("thread", "<u2"),
        ("device", "u1"),
        ("unused", "u1"),
    ]
)
SECTION_DTYPES = {
    TOTALS: np.dtype("<u8"),
    SITES: SITE_DTYPE,
    THREADS: THREAD_DTYPE,
    SAMPLES: SAMPLE_DTYPE,
    MARKS: EVENT_DTYPE,
    LIVE: LIVE_DTYPE,
}


@dataclass(frozen=True)
class FoldTotals:
    """Sums over all folded events, in the order of the file."""

    events: int = 0
    horizon_ticks: int = 0
    alloc_count: int = 0
    alloc_bytes: int = 0
    free_count: int = 0
    free_bytes: int = 0
    unknown_frees: int = 0
    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    peak_bytes_ticks: int = 0
    peak_count: int = 0
    next_object: int = 0
    live_stride: int = 1
    live_listed: int = 0
    release_count: int = 0
    acquire_count: int = 0
    misuse_count: int = 0
    device_bytes: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """The sections of one checkpoint. Without one: zeros and empty arrays, number 0."""

    number: int
    totals: FoldTotals
    sites: np.ndarray
    consumed: dict[int, int]
    samples: np.ndarray
    marks: np.ndarray
    live: np.ndarray

    @staticmethod
    def none() -> Checkpoint:
        """Nothing was folded."""
        empty = {section: np.empty(0, dtype) for section, dtype in SECTION_DTYPES.items()}
        return _build(0, empty)

    def known(self) -> Known:
        """The listed live objects, for pairing the events that remain."""
        live = self.live
        return Known(
            live["number"].astype(np.int64),
            live["device"],
            live["address"],
            live["bytes"],
            self.totals.next_object,
        )


def read_checkpoint(
    source: Source, pieces: np.ndarray, in_force: int, problems: list[str]
) -> Checkpoint:
    """The checkpoint in force, or the newest whole one when it is not whole.

    Args:
        pieces: the fold blocks of the file.
        in_force: ``fold_number`` of the file header; 0 when nothing was folded.
        problems: gets a sentence when another checkpoint had to do.
    """
    if in_force == 0:
        return Checkpoint.none()
    numbers = sorted({int(seq) for seq in pieces["seq"]} - {in_force}, reverse=True)
    for number in [in_force, *numbers]:
        try:
            found = _read(source, pieces[pieces["seq"] == number], number)
        except BadBlock as error:
            problems.append(f"checkpoint {number} cannot be used: {error}")
            continue
        return found
    problems.append("no checkpoint is whole; what was folded is unknown")
    return Checkpoint.none()


def _read(source: Source, pieces: np.ndarray, number: int) -> Checkpoint:
    parts: dict[tuple[int, int], np.ndarray] = {}
    blocks = 0
    for piece in pieces:
        offset, size = int(piece["offset"]), int(piece["bytes"])
        data = source.read(offset, size)
        header = parse_header(data)
        if header.seq != number or header.thread not in SECTION_DTYPES:
            raise BadBlock(f"the block at byte {offset} is another one")
        parts[header.thread, header.part] = _section(header, data)
        blocks = header.thread_first
    if not parts or len(parts) != blocks:
        raise BadBlock(f"{len(parts)} of its {blocks} blocks are there")
    sections = {
        section: np.concatenate(
            [np.empty(0, dtype), *(parts[key] for key in sorted(parts) if key[0] == section)]
        )
        for section, dtype in SECTION_DTYPES.items()
    }
    return _build(number, sections)


def _section(header: BlockHeader, data: bytes) -> np.ndarray:
    rows = entries(header, data, SECTION_DTYPES[header.thread])
    if header.thread == LIVE:
        rows = rows.copy()
        zigzag = rows["address"]
        rows["address"] = (zigzag >> np.uint64(1)) ^ (np.uint64(0) - (zigzag & np.uint64(1)))
        for name in ("number", "ticks", "address"):
            rows[name] = np.cumsum(rows[name], dtype=np.uint64)
    return rows


def _build(number: int, sections: dict[int, np.ndarray]) -> Checkpoint:
    # What a device handed out before the recording may be given back in it: that one sum is signed.
    totals = [int(value) for value in sections[TOTALS][: len(fields(FoldTotals))].view(np.int64)]
    consumed = {int(row["thread"]): int(row["consumed"]) for row in sections[THREADS]}
    return Checkpoint(
        number,
        FoldTotals(*totals),
        sections[SITES],
        consumed,
        sections[SAMPLES],
        sections[MARKS],
        sections[LIVE],
    )
