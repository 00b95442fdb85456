"""Writes a recording that is whole: sealed, with an index, every block with its checksums.

Covers: the file header, slots, blocks of plain events, names, the index. Does not cover: what the
events are (``convert``).
See also: docs/format.md.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tlmem.recording.format.blocks import (
    BLOCK_MAGIC,
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    INDEX_BLOCK,
    META_BLOCK,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
    SLOT_PAYLOAD_BYTES,
)
from tlmem.recording.format.segments import (
    BLOCKS_SLOT,
    HEADER_BYTES,
    MAGIC,
    PIECE_DTYPE,
    SEALED,
    SLOT_MAGIC,
    VERSION,
)
from tlmem.recording.format.symbols import CODE, LABEL, NOTE, SITE, STATE, THREAD

NANOSECONDS = 2
"""The clock of the header: ticks are nanoseconds."""
FIRST_TICKS = 1 << 30
NAMES_PER_BLOCK = 200_000
"""Bytes of names in a block, or one record that is longer."""
INDEX_PER_BLOCK = 3_000
_LEVEL = 1


def text(value: str) -> bytes:
    """UTF-8, halves of characters passed through."""
    return value.encode("utf-8", "surrogatepass")


def record(kind: int, payload: bytes) -> bytes:
    """One meta record."""
    size = 16 + len(payload) + -len(payload) % 8
    head = struct.pack("<IIIB3x", size, len(payload), zlib.crc32(payload), kind)
    return (head + payload).ljust(size, b"\0")


def code(number: int, file: str, function: str) -> bytes:
    """Names a function; where it begins is not known."""
    names = text(file), text(function)
    return record(CODE, struct.pack("<4I", number, 0, *map(len, names)) + b"".join(names))


def site(number: int, parent: int, code_number: int, line: int) -> bytes:
    """Names a call site."""
    return record(SITE, struct.pack("<4I", number, parent, code_number, line))


def thread(number: int, name: str, main: bool) -> bytes:
    """Names a thread."""
    return record(THREAD, struct.pack("<IIQQ", number, main, 0, 0) + text(name))


def note(key: str, value: str) -> bytes:
    """A note about the recording."""
    both = text(key), text(value)
    return record(NOTE, struct.pack("<II", *map(len, both)) + b"".join(both))


def label(number: int, name: str) -> bytes:
    """The text of a mark."""
    return record(LABEL, struct.pack("<II", number, len(text(name))) + text(name))


def state(payload: bytes) -> bytes:
    """Rows of ``allocator_state``."""
    return record(STATE, payload)


@dataclass(frozen=True)
class Block:
    """A block with what the index says of it."""

    data: bytes
    type: int
    seq: int = 0
    thread: int = 0
    count: int = 0
    thread_first: int = 0
    begin: int = 0
    end: int = 0


def block(
    kind: int,
    raw: bytes,
    seq: int,
    thread: int = 0,
    count: int = 0,
    thread_first: int = 0,
    span: tuple[int, int] = (0, 0),
) -> Block:
    """A block with one column, deflated where that makes it smaller."""
    payload = min(zlib.compress(raw, _LEVEL), raw, key=len)
    head = struct.pack(
        "<4sBBHQIIQQQII16I",
        *(BLOCK_MAGIC, kind, 0, 0, seq, thread, count, thread_first, *span),
        *(len(payload), zlib.crc32(payload), len(payload), len(raw), *([0] * 14)),
    )
    data = head + struct.pack("<II", zlib.crc32(head), 0) + payload
    return Block(data + bytes(-len(data) % 8), kind, seq, thread, count, thread_first, *span)


def planes(rows: np.ndarray) -> bytes:
    """All first bytes of the rows, then all second bytes, and so on."""
    width = rows.dtype.itemsize
    return np.frombuffer(rows.tobytes(), np.uint8).reshape(-1, width).T.tobytes()


def _name_blocks(names: Iterable[bytes]) -> Iterator[Block]:
    waiting: list[bytes] = []
    size = seq = 0
    for each in names:
        if waiting and size + len(each) > NAMES_PER_BLOCK:
            seq += 1
            yield block(META_BLOCK, b"".join(waiting), seq)
            waiting, size = [], 0
        waiting.append(each)
        size += len(each)
    if waiting:
        yield block(META_BLOCK, b"".join(waiting), seq + 1)


def _event_blocks(threads: dict[int, np.ndarray]) -> Iterator[Block]:
    seq = 1 << 20
    for number, rows in threads.items():
        for first in range(0, len(rows), EVENTS_PER_SLOT):
            piece = rows[first : first + EVENTS_PER_SLOT]
            span = int(piece["ticks"][0]), int(piece["ticks"][-1])
            seq += 1
            yield block(EVENTS_BLOCK, piece.tobytes(), seq, number, len(piece), first, span)


class _File:
    """Slots of blocks, one behind another."""

    def __init__(self) -> None:
        self.slots: list[bytearray] = []
        self.rows: list[tuple[int, ...]] = []

    def add(self, made: Block, listed: bool = True) -> int:
        """Puts a block into the last slot, or a new one; returns its place in the file."""
        if not self.slots or len(self.slots[-1]) + len(made.data) > SLOT_PAYLOAD_BYTES:
            self.slots.append(bytearray())
        offset = HEADER_BYTES + (len(self.slots) - 1) * SLOT_BYTES + SLOT_HEADER_BYTES
        offset += len(self.slots[-1])
        self.slots[-1] += made.data
        if listed:
            self.rows.append(
                (
                    *(offset, made.seq, made.thread_first, made.begin, made.end),
                    *(len(made.data), made.thread, made.count, made.type, 0),
                )
            )
        return offset

    def add_index(self) -> int:
        """The index, whose blocks name each other from the first on; returns its place."""
        rows, following = np.array(self.rows, PIECE_DTYPE), 0
        for first in reversed(range(0, len(rows), INDEX_PER_BLOCK)):
            piece = rows[first : first + INDEX_PER_BLOCK]
            made = block(INDEX_BLOCK, planes(piece), following, count=len(piece))
            following = self.add(made, listed=False)
        return following

    def bytes(self) -> bytes:
        """All slots, each filled to its size."""
        made = bytearray()
        for number, payload in enumerate(self.slots):
            head = struct.pack(
                "<IB3xQIIQIIQQ",
                *(SLOT_MAGIC, BLOCKS_SLOT, number + 1, 0, 0, 0, 0, len(payload), 0, 0),
            )
            made += head.ljust(SLOT_HEADER_BYTES, b"\0") + payload
            made += bytes(-len(made) % SLOT_BYTES)
        return bytes(made)


def file_of(
    names: Iterable[bytes],
    threads: dict[int, np.ndarray],
    created_unix_ns: int,
    duration_ns: int,
    pid: int,
) -> bytes:
    """A whole file.

    Args:
        names: meta records, each before those that refer to it.
        threads: the events of each thread in order of time, ``ticks`` from ``FIRST_TICKS`` on.
        created_unix_ns: wall clock at the start.
        duration_ns: from the start to the end.
        pid: of the recorded process.
    """
    made = _File()
    for each in _name_blocks(names):
        made.add(each)
    for each in _event_blocks(threads):
        made.add(each)
    index = made.add_index()
    slots = made.bytes()
    head = struct.pack(
        "<8sIIIIQIIIII",
        *(MAGIC, VERSION, HEADER_BYTES, SLOT_BYTES, 32, created_unix_ns, pid, 0, 4096),
        *(NANOSECONDS, 0),
    )
    head += struct.pack("<I8x", zlib.crc32(head))
    head += struct.pack(
        "<QQQQQI4xQQQQQQQ",
        *(2, FIRST_TICKS, FIRST_TICKS, FIRST_TICKS + duration_ns, FIRST_TICKS + duration_ns),
        *(SEALED, len(slots) // SLOT_BYTES, 0, 0, 0, 0, index),
        sum(len(rows) for rows in threads.values()),
    )
    return head.ljust(HEADER_BYTES, b"\0") + slots
