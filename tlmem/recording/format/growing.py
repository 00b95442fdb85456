"""The pieces of a file that a program may still be writing, as they were at one moment.

Covers: copying what threads are writing, finding again what was compacted meanwhile, the moment up
to which everything was seen. Does not cover: checkpoints that replace blocks (``contents``).

The moment is the time of the newest event in a first look at everything. Every event up to then
was committed before the second look, which is the one that counts: of a free and the allocation
before it in another thread, never only the free is seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tlmem.events import EVENT_DTYPE
from tlmem.recording.format.blocks import (
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
)
from tlmem.recording.format.segments import (
    EVENTS_SLOT,
    OPEN,
    SLOT_PIECE,
    Directory,
    FileHeader,
    Scanner,
    Source,
    read_header,
)

RAW_SLOT = SLOT_PIECE + EVENTS_SLOT
_ROUNDS = 50
_MOST_COPIED = 1024
"""Slots; more raw slots than this are no program that runs, but a file nobody compacted."""


@dataclass
class Pieces:
    """Where everything lies, with copies of the slots that were being written.

    ``newest_ticks`` is None when nothing changed while we looked: then all of it counts.
    """

    header: FileHeader
    directory: Directory
    copies: dict[int, bytes] = field(default_factory=dict)
    newest_ticks: int | None = None
    problems: list[str] = field(default_factory=list)


def gather(source: Source, scanner: Scanner) -> Pieces:
    """The pieces of a file, whether it grows or not."""
    header = read_header(source)
    directory = scanner.scan(header)
    raw = directory.of_type(RAW_SLOT)
    if header.state != OPEN or len(raw) > _MOST_COPIED:
        return Pieces(header, directory)
    first_look = _copy_slots(source, scanner, raw)
    again = scanner.scan(header)
    newest = max([header.last_ticks, *map(_last_ticks, first_look.values())])
    newest = max(newest, int(again.of_type(EVENTS_BLOCK)["ticks_end"].max(initial=0)))
    problems: list[str] = []
    for _ in range(_ROUNDS):
        raw = again.of_type(RAW_SLOT)
        copies = _copy_slots(source, scanner, raw)
        seen = {_seq(copy) for copy in copies.values()}
        seen.update(again.of_type(EVENTS_BLOCK)["seq"].tolist())
        again = scanner.scan(header)
        pieces = again.of_type(EVENTS_BLOCK, RAW_SLOT)
        late = pieces["ticks_begin"] > np.uint64(newest)
        if all(seq in seen for seq in pieces["seq"][~late].tolist()):
            break
    else:
        problems.append("the program wrote faster than the file could be read; read it again")
    grows = copies != first_look or read_header(source) != header
    grows = grows or not np.array_equal(again.pieces, directory.pieces)
    copied = raw[np.isin(raw["offset"], np.array(list(copies), np.uint64))]
    again.pieces = np.concatenate([again.pieces[again.pieces["type"] != RAW_SLOT], copied])
    return Pieces(header, again, copies, newest if grows else None, problems)


def _copy_slots(source: Source, scanner: Scanner, pieces: np.ndarray) -> dict[int, bytes]:
    """Copies of the slots that still hold what the pieces say, by offset."""
    copies = {}
    for piece in pieces:
        offset = int(piece["offset"])
        data = source.read(offset, SLOT_BYTES)
        now = scanner.slot(offset)
        if now is not None and now.seq == int(piece["seq"]) == _seq(data):
            copies[offset] = data
    return copies


def _seq(slot: bytes) -> int:
    return int.from_bytes(slot[8:16], "little")


def _last_ticks(slot: bytes) -> int:
    """Time of the last committed event; 0 when there is none."""
    room = min((len(slot) - SLOT_HEADER_BYTES) // EVENT_DTYPE.itemsize, EVENTS_PER_SLOT)
    if room <= 0:
        return 0
    events = np.frombuffer(slot, EVENT_DTYPE, room, SLOT_HEADER_BYTES)
    empty = events["kind"] == 0
    count = int(empty.argmax()) if empty.any() else room
    return int(events["ticks"][count - 1]) if count else 0
