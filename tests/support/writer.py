"""Writes recordings in pure Python, from docs/format.md alone: what the reader is tested against.

Covers: the file header, slots, events blocks of both codecs, names, checkpoints, the index.
Does not cover: what the events mean (``support.oracle``). Imports nothing of tlmem, so that an
error in the reader cannot hide itself.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HEADER_BYTES, SLOT_BYTES, PER_SLOT = 16384, 262144, 8184
OPEN, SEALED, STOPPED = 1, 2, 3
FIELDS = "ticks:<u8 object:<u8 arg:<u8 site:<u4 count:<u2 kind:u1 device:u1"
EVENT = np.dtype([tuple(field.split(":")) for field in FIELDS.split()])
INDEX_ENTRY = struct.Struct("<QQQQQIIIIQ")


def events(rows: Iterable[tuple]) -> np.ndarray:
    """Events from (ticks, object, arg, site, count, kind, device) rows."""
    return np.array(list(rows), EVENT)


def padded(data: bytes) -> bytes:
    """Filled with zeros to a multiple of 8."""
    return data + bytes(-len(data) % 8)


def planes(data: bytes, entry_bytes: int) -> bytes:
    """All first bytes of the entries, all second bytes, and so on."""
    return np.frombuffer(data, np.uint8).reshape(-1, entry_bytes).T.tobytes()


# ---- blocks ----


def block(
    kind: int,
    columns: Sequence[bytes],
    *,
    codec: int = 0,
    part: int = 0,
    seq: int = 0,
    thread: int = 0,
    count: int = 0,
    thread_first: int = 0,
    ticks: tuple[int, int] = (0, 0),
    plain: bool = False,
) -> bytes:
    """A block of any type; columns are compressed when that makes them smaller."""
    sizes, payload = [], b""
    for raw in columns:
        stored = raw if plain else min(raw, zlib.compress(raw, 1), key=len)
        sizes += [len(stored), len(raw)]
        payload += stored
    sizes += [0] * (16 - len(sizes))
    head = struct.pack(
        "<4sBBHQIIQQQ", b"TLBK", kind, codec, part, seq, thread, count, thread_first, *ticks
    )
    head += struct.pack("<II16I", len(payload), zlib.crc32(payload), *sizes)
    return head + struct.pack("<II", zlib.crc32(head), 0) + padded(payload)


def recency(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Recency codes of values, u8 or u16, and the distinct values in order of first appearance."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    numbers = number[inverse.reshape(-1)]
    fresh = np.zeros(len(values), bool)
    fresh[first] = True
    new = np.cumsum(fresh) - fresh
    codes = np.where(fresh, 0, new - numbers)
    if codes.max() < 256:
        return codes.astype("u1").tobytes(), values[first[order]]
    return planes(codes.astype("<u2").tobytes(), 2), values[first[order]]


def events_block(
    rows: np.ndarray,
    *,
    thread: int,
    thread_first: int = 0,
    seq: int,
    time_shift: int = 0,
    codec: int = 1,
    plain: bool = False,
) -> bytes:
    """An events block: columns (codec 1) or plain events (codec 0)."""
    about = {
        "seq": seq,
        "thread": thread,
        "count": len(rows),
        "thread_first": thread_first,
        "ticks": (int(rows["ticks"][0]), int(rows["ticks"][-1])),
        "plain": plain,
        "codec": codec,
    }
    if codec == 0:
        return block(1, [rows.tobytes()], **about)
    units = rows["ticks"] >> np.uint64(time_shift)
    steps = np.diff(units, prepend=units[:1])
    short = np.minimum(steps, 65535).astype("<u2")
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), 32)
    shape_codes, shapes = recency(np.ascontiguousarray(raw[:, 16:]).view("V16").reshape(-1))
    object_codes, objects = recency(rows["object"])
    change = np.diff(objects, prepend=np.uint64(0))
    sign = (change.view("<i8") >> 63).view("<u8")
    zigzag = (change << np.uint64(1)) ^ sign
    columns = [
        (short & 255).astype("u1").tobytes(),
        (short >> 8).astype("u1").tobytes(),
        steps[short == 65535].astype("<u8").tobytes(),
        shape_codes,
        planes(shapes.tobytes(), 16),
        object_codes,
        planes(zigzag.tobytes(), 8),
    ]
    return block(1, columns, **about)


# ---- names ----


def record(kind: int, payload: bytes) -> bytes:
    """A meta record."""
    whole = padded(bytes(16) + payload)
    head = struct.pack("<IIIB3x", len(whole), len(payload), zlib.crc32(payload), kind)
    return head + whole[16:]


def encoded(text: str) -> bytes:
    """UTF-8, with halves of characters passed through."""
    return text.encode("utf-8", "surrogatepass")


def code(number: int, file: str, function: str, first_line: int = 1) -> bytes:
    """Names a code object."""
    texts = [encoded(file), encoded(function)]
    return record(1, struct.pack("<IIII", number, first_line, *map(len, texts)) + b"".join(texts))


def site(number: int, parent: int, code_number: int, line: int) -> bytes:
    """Names a call site."""
    return record(2, struct.pack("<IIII", number, parent, code_number, line))


def thread(
    number: int, name: str = "", main: bool = False, os_id: int = 0, ticks: int = 0
) -> bytes:
    """Names a thread."""
    return record(3, struct.pack("<IIQQ", number, main, os_id, ticks) + encoded(name))


def note(key: str, value: str) -> bytes:
    """A note about the run."""
    texts = [encoded(key), encoded(value)]
    return record(4, struct.pack("<II", *map(len, texts)) + b"".join(texts))


def line(code_number: int, line_number: int, text: bytes) -> bytes:
    """The text of a line of source."""
    return record(7, struct.pack("<III", code_number, line_number, len(text)) + text)


def label(number: int, text: str) -> bytes:
    """The text of a mark."""
    return record(5, struct.pack("<II", number, len(encoded(text))) + encoded(text))


def holding(
    snapshot: int,
    group: int,
    ticks: int,
    steps: Sequence[tuple] = (),
    addresses: Sequence[int] = (),
    *,
    trigger: int = 5,
    flags: int = 0,
    arrays: int | None = None,
    held_bytes: int = 0,
    used_bytes: int = 0,
    device: int = 1,
    what: int = 0,
) -> bytes:
    """A chain of holders: steps are (kind, type, edge, items), the last two may be left out."""
    count = len(addresses) if arrays is None else arrays
    numbers = (ticks, snapshot, trigger, flags, len(steps), count, held_bytes, used_bytes)
    payload = struct.pack("<QIBBHQQQIHBB", *numbers, group, len(addresses), device, what)
    payload += struct.pack(f"<{len(addresses)}Q", *addresses)
    for step in steps:
        kind, name, edge, items = (*step, *("", 0)[len(step) - 2 :])
        texts = edge.encode(), name.encode()
        payload += struct.pack("<BBHI", kind, *map(len, texts), items) + b"".join(texts)
    return record(8 if what else 6, payload)


def holding_totals(snapshot: int, ticks: int, **about: int) -> bytes:
    """The record that makes a snapshot whole."""
    return holding(snapshot, 2**32 - 1, ticks, **about)


# ---- checkpoints ----

SECTION_ENTRY_BYTES = {0: 8, 1: 56, 2: 16, 3: 24, 4: 32, 5: 40, 6: 32, 7: 48}


def fold_blocks(
    number: int, sections: Mapping[int, bytes], entries_per_block: int = 4800
) -> list[bytes]:
    """The blocks of a checkpoint. Section 5 is given with full object numbers and ticks."""
    cut = []
    for section, data in sections.items():
        step = SECTION_ENTRY_BYTES[section] * entries_per_block
        cut += [
            (section, part, data[at : at + step])
            for part, at in enumerate(range(0, len(data), step))
        ]
    blocks = []
    for section, part, data in cut:
        size = SECTION_ENTRY_BYTES[section]
        if section == 5:
            words = np.frombuffer(data, "<u8").reshape(-1, 5).copy()
            words[:, :3] = np.diff(words[:, :3], axis=0, prepend=np.uint64(0))
            steps = words[:, 2].view(np.int64)
            words[:, 2] = ((steps << 1) ^ (steps >> 63)).view(np.uint64)
            data = words.tobytes()
        about = {"part": part, "seq": number, "thread": section, "thread_first": len(cut)}
        about["count"] = len(data) // size
        blocks.append(block(3, [planes(data, size)], **about))
    return blocks


# ---- slots and the file ----


def slot(
    kind: int,
    payload: bytes,
    *,
    seq: int,
    thread: int = 0,
    closed: bool = False,
    thread_first: int = 0,
    count: int = 0,
    ticks: tuple[int, int] = (0, 0),
) -> bytes:
    """One slot, filled with zeros to its full size."""
    used = 0 if kind == 1 else len(payload)
    head = struct.pack(
        "<4sB3xQIIQIIQQ", b"TLSG", kind, seq, thread, closed, thread_first, count, used, *ticks
    )
    data = head + bytes(128 - len(head)) + payload
    assert len(data) <= SLOT_BYTES
    return data + bytes(SLOT_BYTES - len(data))


def events_slot(
    rows: np.ndarray, *, thread: int, thread_first: int = 0, seq: int, closed: bool = False
) -> bytes:
    """An events slot; an open one says nothing about its end."""
    ticks = (
        (int(rows["ticks"][0]), int(rows["ticks"][-1]) if closed else 0) if len(rows) else (0, 0)
    )
    return slot(
        1,
        rows.tobytes(),
        seq=seq,
        thread=thread,
        closed=closed,
        thread_first=thread_first,
        count=len(rows) if closed else 0,
        ticks=ticks,
    )


def packed(pieces: Iterable[bytes], kind: int, first_seq: int) -> list[bytes]:
    """Slots of blocks (2) or names (3), each filled as far as whole pieces fit."""
    slots, payload = [], b""
    for piece in pieces:
        if len(payload) + len(piece) > SLOT_BYTES - 128:
            slots.append(slot(kind, payload, seq=first_seq + len(slots)))
            payload = b""
        payload += piece
    return [*slots, slot(kind, payload, seq=first_seq + len(slots))] if payload else slots


@dataclass
class Header:
    """The file header. One tick is half a nanosecond unless the pairs say otherwise."""

    version: int = 1
    created_unix_ns: int = 1_700_000_000_000_000_000
    pid: int = 100
    parent_pid: int = 0
    clock: int = 1
    time_shift: int = 2
    calibration_seq: int = 2
    first_ticks: int = 1_000_000
    first_ns: int = 5_000_000
    last_ticks: int = 1_000_000 + 2_000_000_000
    last_ns: int = 5_000_000 + 1_000_000_000
    state: int = OPEN
    slot_count: int = 0
    lost_events: int = 0
    limit_bytes: int = 0
    fold_number: int = 0
    folded_events: int = 0
    index_offset: int = 0
    total_events: int = 0

    def pack(self) -> bytes:
        """The first 16384 bytes of the file."""
        head = struct.pack("<8sIIII", b"TLMEM\r\n\x1a", self.version, HEADER_BYTES, SLOT_BYTES, 32)
        head += struct.pack(
            "<QIIIII",
            self.created_unix_ns,
            self.pid,
            self.parent_pid,
            4096,
            self.clock,
            self.time_shift,
        )
        head += struct.pack("<I8x", zlib.crc32(head))
        head += struct.pack(
            "<QQQQQI4xQQQQQQQ",
            *(self.calibration_seq, self.first_ticks, self.first_ns, self.last_ticks, self.last_ns),
            *(self.state, self.slot_count, self.lost_events, self.limit_bytes, self.fold_number),
            *(self.folded_events, self.index_offset, self.total_events),
        )
        return head + bytes(HEADER_BYTES - len(head))


@dataclass
class RecordingWriter:
    """Builds a whole file from the events of each thread.

    Attributes:
        per_slot: events in each slot; fewer than the format's 8184 make small tests cross slots.
        form: ``compact`` (blocks, the last piece of a thread an open slot), ``raw`` (slots only) or
            ``sealed`` (blocks only, names in blocks, an index).
        codec: of events blocks; -1 takes both in turn.
    """

    header: Header = field(default_factory=Header)
    form: str = "compact"
    per_slot: int = PER_SLOT
    codec: int = 1
    meta: list[bytes] = field(default_factory=list)
    threads: dict[int, np.ndarray] = field(default_factory=dict)
    consumed: dict[int, int] = field(default_factory=dict)
    fold: list[bytes] = field(default_factory=list)
    extra_slots: list[bytes] = field(default_factory=list)

    def _pieces(self) -> tuple[list[bytes], list[bytes]]:
        """Blocks in the order in which their threads went on, and events slots; a seq stays."""
        blocks, slots = [], []
        for number, rows in self.threads.items():
            folded = self.consumed.get(number, 0)
            starts = range(folded // self.per_slot * self.per_slot, len(rows), self.per_slot)
            for first in starts:
                seq = 100_000 * number + first
                piece = rows[first : first + self.per_slot]
                last = first + self.per_slot >= len(rows)
                about = {"thread": number, "thread_first": first, "seq": seq}
                if self.form == "raw" or (self.form == "compact" and last):
                    slots.append(events_slot(piece, closed=not last, **about))
                else:
                    codec = first // self.per_slot % 2 if self.codec < 0 else self.codec
                    shift = self.header.time_shift
                    block = events_block(piece, codec=codec, time_shift=shift, **about)
                    full = rows["ticks"][min(first + self.per_slot, len(rows) - 1)]
                    blocks.append((int(full), block))
        return [block for _, block in sorted(blocks, key=lambda pair: pair[0])], slots

    def build(self) -> bytes:
        """The bytes of the file."""
        blocks, events_slots = self._pieces()
        sealed = self.form == "sealed"
        if sealed and self.meta:
            blocks.append(block(2, [b"".join(self.meta)]))
        names = [] if sealed else packed(self.meta, 3, 1)
        slots = [*names, *packed([*self.fold, *blocks], 2, 100), *events_slots, *self.extra_slots]
        if sealed:
            self.header.state = SEALED
            slots += self._index(slots)
        self.header.slot_count = len(slots)
        return self.header.pack() + b"".join(slots)

    def _index(self, slots: list[bytes]) -> list[bytes]:
        """One more slot, with the index in two parts that name each other."""
        entries = []
        for number, data in enumerate(slots):
            (used,) = struct.unpack_from("<I", data, 36)
            at = 128
            while data[4] == 2 and at < 128 + used:
                kind = data[at + 4]
                seq, thread_number, count, first, begin, end, size = struct.unpack_from(
                    "<QIIQQQI", data, at + 8
                )
                whole = 128 + size + -size % 8
                start = HEADER_BYTES + number * SLOT_BYTES + at
                entries.append(
                    INDEX_ENTRY.pack(
                        start, seq, first, begin, end, whole, thread_number, count, kind, 0
                    )
                )
                at += whole
        half = (len(entries) + 1) // 2
        offset, written, start = 0, b"", HEADER_BYTES + len(slots) * SLOT_BYTES + 128
        for part in (entries[half:], entries[:half]):
            data = block(4, [planes(b"".join(part), 64)], seq=offset, count=len(part))
            offset = start + len(written)
            written += data
        self.header.index_offset = offset
        return [slot(2, written, seq=9_999_999)]

    def write(self, path: Path) -> Path:
        """Writes the file and returns its path."""
        path.write_bytes(self.build())
        return path
