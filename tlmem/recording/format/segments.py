"""The file of a recording: its header, its slots, and where every piece of it lies.

Covers: reading bytes without trusting them, the file header, the walk over slots, the index.
Does not cover: what is inside a block (``blocks``), or putting events in order (``timeline``).
See also: docs/format.md, "File header", "Slots" and "Index".

The file is read, never mapped: it may shrink while we look at it, and a mapped page that is gone
would end the process.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import weakref
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tlmem.errors import (
    DamagedRecording,
    EmptyRecording,
    MissingFile,
    NotARecording,
    TooManyFiles,
    UnsupportedVersion,
)
from tlmem.recording.format import limits, remote
from tlmem.recording.format.blocks import (
    BLOCK_HEADER_BYTES,
    BLOCK_MAGIC,
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    INDEX_BLOCK,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
    SLOT_PAYLOAD_BYTES,
    BadBlock,
    entries,
    parse_header,
)

MAGIC = b"TLMEM\r\n\x1a"
VERSION = 1
HEADER_BYTES = 16384
SLOT_MAGIC = 0x47534C54
EVENTS_SLOT, BLOCKS_SLOT, META_SLOT = 1, 2, 3
OPEN, SEALED, STOPPED = 1, 2, 3
SLOT_PIECE = 0x100
"""Added to the type of a piece that is a slot itself: raw events or names."""

_FILE_HEADER = struct.Struct("<8sIIIIQIIIIII8xQQQQQI4xQQQQQQQ")
_SLOT_HEADER = struct.Struct("<IB3xQIIQIIQQ")

_LARGEST_SHIFT = 32
_PIECE = 1 << 16
"""Times that are converted at once."""
_FASTEST_TICK_NS, _SLOWEST_TICK_NS = 0.01, 1000.0
"""Beyond these no clock runs: the calibration is damaged."""

PIECE_DTYPE = np.dtype(
    [
        ("offset", "<u8"),
        ("seq", "<u8"),
        ("thread_first", "<u8"),
        ("ticks_begin", "<u8"),
        ("ticks_end", "<u8"),
        ("bytes", "<u4"),
        ("thread", "<u4"),
        ("count", "<u4"),
        ("type", "<u4"),
        ("closed", "<u8"),
    ]
)
"""One piece of the file, in the layout of an index entry (whose last field is 0)."""


class Source:
    """A file to read from at any offset; closed when it is forgotten.

    A path that is a URL, such as ``s3://bucket/x.tlm``, is read by ranges; see ``remote``.
    """

    def __new__(cls, path: Path, *_: object) -> Source:
        """The source for this kind of path."""
        return object.__new__(RemoteSource if cls is Source and remote.url_of(path) else cls)

    def __init__(self, path: Path) -> None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise NotARecording(f"{path} is not a file; name a recording")
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise MissingFile(f"{path} does not exist; check the path") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
                raise TooManyFiles(
                    f"{path} cannot be opened: {reason}; "
                    "raise the limit of open files (ulimit -n), or name fewer recordings"
                ) from None
            raise MissingFile(f"{path} cannot be opened: {reason}") from None
        self._close = weakref.finalize(self, os.close, self._fd)
        self.path = path

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self._fd).st_size

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``; fewer at the end of the file."""
        try:
            return os.pread(self._fd, count, offset)
        except OSError as error:
            raise DamagedRecording(f"{self.path} cannot be read: {error.strerror}") from None


class RemoteSource(Source):
    """A file in object storage."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ranges = remote.Ranges(remote.url_of(path))

    def size(self) -> int:
        """Bytes in the file."""
        return self._ranges.size

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``; fewer at the end of the file."""
        return self._ranges.read(offset, count)


class FrozenSource(Source):
    """A source with copies of some stretches, which hold when the file has changed there."""

    def __init__(self, source: Source, stretches: Iterable[tuple[int, int]]) -> None:
        self.path = source.path
        self._source = source
        self._copies = {(at, count): source.read(at, count) for at, count in stretches}

    def size(self) -> int:
        """Bytes in the file now."""
        return self._source.size()

    def read(self, offset: int, count: int) -> bytes:
        """The copy of this very stretch, else what the file holds now."""
        copy = self._copies.get((offset, count))
        return self._source.read(offset, count) if copy is None else copy


@dataclass(frozen=True)
class FileHeader:
    """The header of a recording, as docs/format.md names its fields."""

    version: int
    created_unix_ns: int
    pid: int
    parent_pid: int
    page_bytes: int
    clock: int
    time_shift: int
    calibration_seq: int
    first_ticks: int
    first_ns: int
    last_ticks: int
    last_ns: int
    state: int
    slot_count: int
    lost_events: int
    limit_bytes: int
    fold_number: int
    folded_events: int
    index_offset: int
    total_events: int
    sound: bool
    """The part that never changes has the right checksum."""

    @property
    def calibrated(self) -> bool:
        """Whether the two clock readings give a rate that a clock can have."""
        ticks, nanoseconds = self.last_ticks - self.first_ticks, self.last_ns - self.first_ns
        return ticks > 0 and _FASTEST_TICK_NS < nanoseconds / ticks < _SLOWEST_TICK_NS

    @property
    def ns_per_tick(self) -> float:
        """Length of a tick; 1 when the clock was never calibrated."""
        if not self.calibrated:
            return 1.0
        return (self.last_ns - self.first_ns) / (self.last_ticks - self.first_ticks)

    def to_ns(self, ticks: np.ndarray) -> np.ndarray:
        """Nanoseconds since the start of the recording."""
        shift, ns_per_tick = np.uint64(self.time_shift), self.ns_per_tick
        times = np.empty(ticks.shape, np.int64)
        for start in range(0, len(ticks), _PIECE):
            stretch = ticks[start : start + _PIECE]
            since = (stretch >> shift << shift) - np.uint64(self.first_ticks)
            nanoseconds = since.view(np.int64) * ns_per_tick
            times[start : start + _PIECE] = nanoseconds.clip(0, limits.LATEST_NS)
        return times


def read_header(source: Source) -> FileHeader:
    """The file header.

    Raises:
        NotARecording, EmptyRecording, UnsupportedVersion, DamagedRecording: as their names say.
    """
    data = source.read(0, _FILE_HEADER.size)
    path = source.path
    if not data:
        raise EmptyRecording(f"{path} is empty (0 bytes); record the program again")
    if not data.strip(b"\0"):
        raise EmptyRecording(
            f"{path} holds nothing but {source.size()} zero bytes, as a recording does that was "
            "ended before it had begun; record the program again"
        )
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise NotARecording(f"{path} is not a tlmem recording (it begins with {data[:8]!r})")
    if len(data) < _FILE_HEADER.size:
        raise EmptyRecording(f"{path} was cut inside its header, after {len(data)} bytes")
    _, version, header_bytes, slot_bytes, event_bytes, created, *fields = _FILE_HEADER.unpack(data)
    sound = zlib.crc32(data[:52]) == fields.pop(5)
    if sound and version > VERSION:
        raise UnsupportedVersion(
            f"{path} has format version {version}, this tlmem reads up to {VERSION}; upgrade tlmem"
        )
    if sound and (header_bytes, slot_bytes, event_bytes) != (HEADER_BYTES, SLOT_BYTES, 32):
        raise DamagedRecording(f"{path} has a layout that version {version} does not have")
    header = FileHeader(version, created, *fields, sound)  # type: ignore[call-arg]
    return header if header.time_shift <= _LARGEST_SHIFT else replace(header, time_shift=0)


@dataclass(frozen=True)
class SlotHeader:
    """The header of a slot, as docs/format.md names its fields."""

    type: int
    seq: int
    thread: int
    closed: int
    thread_first: int
    count: int
    used_bytes: int
    ticks_begin: int
    ticks_end: int


@dataclass
class Directory:
    """Where everything lies: one row of ``pieces`` for each block, events slot and meta slot."""

    pieces: np.ndarray
    problems: list[str] = field(default_factory=list)
    from_index: bool = False

    def of_type(self, *types: int) -> np.ndarray:
        """The pieces of these types, in file order."""
        return self.pieces[np.isin(self.pieces["type"], types)]


class Scanner:
    """Finds the pieces of a file; a second scan looks only at what has changed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._blocks: dict[int, tuple[int, int, list[tuple], list[str]]] = {}

    def scan(self, header: FileHeader) -> Directory:
        """All pieces: from the index of a sealed file, else by a walk over the slots.

        Raises:
            DamagedRecording: they claim more events than a file of this length can hold.
        """
        directory = self._scan(header)
        self._check_events(directory)
        return directory

    def _scan(self, header: FileHeader) -> Directory:
        problems: list[str] = []
        if header.state == SEALED and header.index_offset:
            try:
                pieces = np.concatenate(list(self._index(header.index_offset)))
                _check_places(pieces)
                return Directory(pieces, from_index=True)
            except BadBlock as error:
                problems.append(f"the index is damaged ({error}); the slots were walked instead")
        rows: list[tuple] = []
        for offset, slot in self.slots():
            rows.extend(self._slot_pieces(offset, slot, problems))
        return Directory(np.array(rows, PIECE_DTYPE), problems)

    def _check_events(self, directory: Directory) -> None:
        pieces = directory.of_type(EVENTS_BLOCK, SLOT_PIECE + EVENTS_SLOT)
        claimed = int(pieces["count"].clip(max=EVENTS_PER_SLOT).sum(dtype=np.int64))
        size = self.source.size()
        if claimed > limits.most_events(size):
            raise DamagedRecording(
                f"{self.source.path} claims {claimed} events in {size} bytes, and no recorder "
                f"writes more than {limits.MOST_EVENTS_PER_BYTE} in a byte: it is damaged or "
                "forged; record the program again"
            )

    def slots(self) -> Iterator[tuple[int, SlotHeader]]:
        """File offset and header of each slot that was ever used."""
        for offset in range(HEADER_BYTES, self.source.size(), SLOT_BYTES):
            slot = self.slot(offset)
            if slot is not None:
                yield offset, slot

    def slot(self, offset: int) -> SlotHeader | None:
        """The header of the slot at this offset; None where there is none."""
        data = self.source.read(offset, _SLOT_HEADER.size)
        if len(data) < _SLOT_HEADER.size:
            return None
        magic, *fields = _SLOT_HEADER.unpack(data)
        return SlotHeader(*fields) if magic == SLOT_MAGIC else None

    def _slot_pieces(self, offset: int, slot: SlotHeader, problems: list[str]) -> list[tuple]:
        if slot.type == EVENTS_SLOT:
            count = min(slot.count, EVENTS_PER_SLOT) if slot.closed else EVENTS_PER_SLOT
            return [
                (
                    *(offset, slot.seq, slot.thread_first, slot.ticks_begin),
                    *(slot.ticks_end if slot.closed else 2**64 - 1, SLOT_BYTES, slot.thread),
                    *(count, SLOT_PIECE + EVENTS_SLOT, int(slot.closed != 0)),
                )
            ]
        if slot.type == META_SLOT:
            used = min(slot.used_bytes, SLOT_PAYLOAD_BYTES)
            return [(offset, slot.seq, 0, 0, 0, used, 0, 0, SLOT_PIECE + META_SLOT, 0)]
        if slot.type != BLOCKS_SLOT:
            return []
        seq, done, rows, damage = self._blocks.get(offset, (slot.seq, 0, [], []))
        if seq != slot.seq:
            done, rows, damage = 0, [], []
        used = min(slot.used_bytes, SLOT_PAYLOAD_BYTES)
        rows += self._block_pieces(offset + SLOT_HEADER_BYTES, done, used, damage)
        self._blocks[offset] = (slot.seq, used, rows, damage)
        problems.extend(damage)
        return rows

    def _block_pieces(self, start: int, at: int, used: int, problems: list[str]) -> Iterator[tuple]:
        while at < used:
            try:
                block = parse_header(self.source.read(start + at, BLOCK_HEADER_BYTES))
            except BadBlock as error:
                problems.append(f"the block at byte {start + at} was dropped: {error}")
                at = self._next_block(start, at + 8, used)
                continue
            if block.type != INDEX_BLOCK:
                yield (
                    *(start + at, block.seq, block.thread_first, block.ticks_begin),
                    *(block.ticks_end, block.bytes, block.thread, block.count, block.type, 1),
                )
            at += block.bytes

    def _next_block(self, start: int, at: int, used: int) -> int:
        """Where the next sound block of a slot begins after damage; ``used`` when there is none."""
        data = self.source.read(start, used)
        found = data.find(BLOCK_MAGIC, at)
        while found >= 0:
            try:
                parse_header(data[found : found + BLOCK_HEADER_BYTES])
            except BadBlock:
                found = data.find(BLOCK_MAGIC, found + 1)
                continue
            return found
        return used

    def _index(self, offset: int) -> Iterator[np.ndarray]:
        """Entries of the index, block by block; each block names the next."""
        size = self.source.size()
        room = limits.most_pieces(size)
        seen: set[int] = set()
        while True:
            if not HEADER_BYTES <= offset < size or offset in seen:
                raise BadBlock("it points outside the file")
            seen.add(offset)
            block = parse_header(self.source.read(offset, BLOCK_HEADER_BYTES))
            if block.type != INDEX_BLOCK:
                raise BadBlock("it points to something else")
            room -= block.count
            if room < 0:
                raise BadBlock(f"it lists more blocks than fit into {size} bytes")
            rows = entries(block, self.source.read(offset, block.bytes), PIECE_DTYPE).copy()
            # In a sum an offset near 2**64 would wrap around: it is compared first.
            ends = rows["offset"] + rows["bytes"].astype(np.uint64)
            if len(rows) and (
                int(rows["offset"].max()) > size
                or int(ends.max()) > size
                or int(rows["bytes"].max()) > SLOT_BYTES
            ):
                raise BadBlock("it lists blocks outside the file")
            rows["closed"] = 1
            yield rows
            offset = block.seq
            if offset == 0:
                return


def _check_places(pieces: np.ndarray) -> None:
    """That the blocks of an index are blocks and lie one behind another.

    Raises:
        BadBlock: some bytes would be read twice, or as something that no index lists.
    """
    if not len(pieces):
        return
    if int(pieces["type"].max()) >= SLOT_PIECE or int(pieces["offset"].min()) < HEADER_BYTES:
        raise BadBlock("it lists something that is not a block")
    order = np.argsort(pieces["offset"], kind="stable")
    offset, size = pieces["offset"][order], pieces["bytes"][order].astype(np.uint64)
    if (offset[:-1] + size[:-1] > offset[1:]).any() or int(size.min()) < limits.LEAST_PIECE_BYTES:
        raise BadBlock("it lists the same bytes twice")
