"""Forged recordings: files of at most 2 MB with right checksums, in which one thing is a lie or a
burden.

Covers: each field of docs/format.md that is a count, an offset, a length, a depth, a number, a size
or a time; streams that inflate to a thousand times their size; events that are legal, tiny and the
most expensive there are. Does not cover: wrong checksums and cut files (``test_forged_mutants``).
Imports nothing of tlmem: what the reader believes cannot make a forgery weaker.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np
from support import writer
from support.writer import Header

MOST_BYTES = 2_000_000
FULL = 2**64 - 1
FIRST = 1_000_000
"""Ticks of the first event; a tick is half a nanosecond."""
(ALLOC, FREE, REALLOC, ACQUIRE, RELEASE, REGISTER, UNREGISTER, PROMOTE, ESCAPE) = range(1, 10)
(SCOPE_ENTER, SCOPE_EXIT, FRAME_ENTER, FRAME_EXIT, SLOT_GET, SLOT_GROW) = range(10, 16)
(POOL_HIT, POOL_MISS, POOL_PUT, POOL_DROP, POOL_PRUNE, POOL_RESERVE) = range(16, 22)
(DEVICE_ALLOC, DEVICE_FREE, TAPE_RECORD, TAPE_SAVE, TAPE_UNSAVE) = range(22, 27)
(BACKWARD_BEGIN, BACKWARD_END, DETACH, RESET, CLEAR_GRADS) = range(27, 32)
MARK, SAMPLE, MISUSE, HOLDERS, COPY = range(32, 37)
NUMPY, PROBE, CPU = 1, 3, 16
HOLDER = 1 << 56
NAMES_IN_A_BLOCK = 600_000
LONG_COLUMN = 100_000
MANY = 1_000_000
"""Events of a file with many; more would be folded before they are looked at."""

Forgery = Callable[[], bytes]
FORGERIES: dict[str, Forgery] = {}


def forgery(make: Forgery) -> Forgery:
    """Registers a forged file under the name of the function that makes it."""
    FORGERIES[make.__name__] = make
    return make


# ---- parts ----


def rows(
    count: int,
    kind: int | np.ndarray = ALLOC,
    *,
    object: int | np.ndarray | None = None,
    arg: int | np.ndarray = 8,
    site: int | np.ndarray = 2,
    count_after: int | np.ndarray = 1,
    device: int | np.ndarray = NUMPY,
    ticks: np.ndarray | None = None,
    step: int = 400,
) -> np.ndarray:
    """Events as columns; each object is another one unless it is given."""
    made = np.zeros(count, writer.EVENT)
    at = np.arange(count, dtype=np.uint64)
    made["ticks"] = FIRST + 400 + at * step if ticks is None else ticks
    made["object"] = (at + 1) * 64 if object is None else object
    made["arg"], made["site"], made["count"] = arg, site, count_after
    made["kind"], made["device"] = kind, device
    return made


def blocks_of(events: np.ndarray, thread: int = 1, first: int = 0) -> Iterator[bytes]:
    """Events blocks of one thread, as a recorder writes them."""
    for at in range(0, len(events), writer.PER_SLOT):
        yield writer.events_block(
            events[at : at + writer.PER_SLOT],
            thread=thread,
            thread_first=first + at,
            seq=thread * 1_000_000 + first + at + 1,
            time_shift=2,
        )


def patched(block: bytes, **fields: int) -> bytes:
    """A block with other header fields and the checksum that goes with them."""
    places = {"seq": (8, "<Q"), "thread": (16, "<I"), "count": (20, "<I"), "first": (24, "<Q")}
    places |= {"begin": (32, "<Q"), "end": (40, "<Q"), "part": (6, "<H"), "type": (4, "<B")}
    data = bytearray(block)
    for name, value in fields.items():
        at, form = places[name]
        struct.pack_into(form, data, at, value)
    struct.pack_into("<I", data, 120, zlib.crc32(memoryview(data)[:120]))
    return bytes(data)


def dense(kind: int, columns: list[bytes], **about: int) -> bytes:
    """A block whose columns are stored as small as zlib can.

    Long ones are as short at level 6, and made in a tenth of the time.
    """
    sizes, payload = [], b""
    for raw in columns:
        level = 9 if len(raw) < LONG_COLUMN else 6
        stored = min(raw, zlib.compress(raw, level), key=len)
        sizes += [len(stored), len(raw)]
        payload += stored
    sizes += [0] * (16 - len(sizes))
    head = struct.pack(
        "<4sBBHQIIQQQ",
        *(b"TLBK", kind, about.get("codec", 0), about.get("part", 0), about.get("seq", 0)),
        *(about.get("thread", 0), about.get("count", 0), about.get("first", 0)),
        *(about.get("begin", FIRST), about.get("end", FIRST)),
    )
    head += struct.pack("<II16I", len(payload), zlib.crc32(payload), *sizes)
    return head + struct.pack("<II", zlib.crc32(head), 0) + writer.padded(payload)


def file(
    blocks: Iterable[bytes] = (),
    *,
    names: Iterable[bytes] = (),
    header: Header | None = None,
    sealed: bool = False,
    slots: Iterable[bytes] = (),
    index: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A whole file of at most 2 MB: what does not fit is left out.

    Args:
        names: meta records; packed into compressed blocks.
        index: from the file so far to an index block that is written behind it.
    """
    header = header or Header()
    whole, room = [], b""
    for record in names:
        if room and len(room) + len(record) > NAMES_IN_A_BLOCK:
            whole.append(dense(2, [room], seq=len(whole) + 1))
            room = b""
        room += record
    if room:
        whole.append(dense(2, [room], seq=len(whole) + 1))
    more = list(slots)
    most = (MOST_BYTES - writer.HEADER_BYTES) // writer.SLOT_BYTES - len(more) - bool(index)
    data = header.pack() + b"".join(
        [*writer.packed([*whole[:1], *blocks, *whole[1:]], 2, 100)[:most], *more]
    )
    if index is not None:
        header.index_offset = len(data) + 128
        sealed = True
        data += writer.slot(2, index(data), seq=9_999_999)
    if sealed:
        header.state = writer.SEALED
    header.slot_count = (len(data) - writer.HEADER_BYTES) // writer.SLOT_BYTES
    data = header.pack() + data[writer.HEADER_BYTES :]
    assert len(data) <= MOST_BYTES
    return data


def base_names() -> list[bytes]:
    """A function with a line, so that something can be blamed."""
    return [
        writer.code(1, "/home/user/train.py", "train", 3),
        writer.thread(1, "main", main=True),
        writer.note("command", "train.py"),
        writer.note("script", "/home/user/train.py"),
        writer.label(1, "tlmem:begin"),
        writer.label(2, "tlmem:end"),
        writer.label(3, "step"),
        writer.site(2, 0, 1, 7),
    ]


def with_events(
    events: np.ndarray, names: Iterable[bytes] = (), header: Header | None = None
) -> bytes:
    """A file with these events of one thread."""
    return file(blocks_of(events), names=[*base_names(), *names], header=header)


def entry(block_at: int, data: bytes, **other: int) -> bytes:
    """An index entry of the block at an offset, with some fields that lie."""
    seq, thread, count, first, begin, end, size = struct.unpack_from("<QIIQQQI", data, block_at + 8)
    whole = 128 + size + -size % 8
    fields = {
        "offset": block_at, "seq": seq, "first": first, "begin": begin, "end": end,
        "bytes": whole, "thread": thread, "count": count, "type": data[block_at + 4],
    }  # fmt: skip
    fields |= other
    return writer.INDEX_ENTRY.pack(*fields.values(), 0)


def index_block(entries: bytes) -> bytes:
    """One index block."""
    return dense(4, [writer.planes(entries, 64)], count=len(entries) // 64)


FIRST_BLOCK = writer.HEADER_BYTES + 128

# ---- the index ----


@forgery
def index_names_one_block_of_names_a_thousand_times() -> bytes:
    text = writer.note("n", "x" * 3_900_000)
    return file(
        [],
        names=[text],
        slots=[writer.slot(2, b"".join(blocks_of(rows(100))), seq=200)],
        index=lambda data: index_block(
            b"".join(entry(FIRST_BLOCK, data, seq=n + 1) for n in range(2000))
            + entry(writer.HEADER_BYTES + writer.SLOT_BYTES + 128, data)
        ),
    )


@forgery
def index_names_one_block_of_events_many_times() -> bytes:
    return file(
        blocks_of(rows(8184)),
        index=lambda data: index_block(
            b"".join(entry(FIRST_BLOCK, data, first=8184 * n) for n in range(60_000))
        ),
    )


@forgery
def index_claims_half_a_billion_events() -> bytes:
    return file(
        blocks_of(rows(100)),
        index=lambda data: index_block(
            entry(FIRST_BLOCK, data)
            + b"".join(
                entry(FIRST_BLOCK, data, count=8184, seq=n, first=8184 * n) for n in range(60_000)
            )
        ),
    )


@forgery
def index_of_many_parts_that_inflate() -> bytes:
    made = file(blocks_of(rows(100)), sealed=True)
    one = entry(FIRST_BLOCK, made)
    part = dense(4, [writer.planes(one * 65_000, 64)], count=65_000)
    start = len(made) + 128
    count = (writer.SLOT_BYTES - 128) // len(part)
    parts = [
        patched(part, seq=start + (n + 1) * len(part) if n + 1 < count else 0) for n in range(count)
    ]
    return file(blocks_of(rows(100)), index=lambda data: b"".join(parts))


@forgery
def index_entries_outside_and_between() -> bytes:
    return file(
        blocks_of(rows(9000)),
        index=lambda data: index_block(
            entry(FIRST_BLOCK, data)
            + entry(FIRST_BLOCK, data, offset=FULL - 100, bytes=50)
            + entry(FIRST_BLOCK, data, offset=FIRST_BLOCK + 8, bytes=2**32 - 1)
            + entry(FIRST_BLOCK, data, type=0x101, count=2**32 - 1)
            + entry(FIRST_BLOCK, data, type=0x103)
            + entry(FIRST_BLOCK, data, offset=0, bytes=8)
        ),
    )


@forgery
def index_with_slots_as_pieces() -> bytes:
    """Entries of type "raw slot" at every eighth byte: each would be read as 8,184 events."""
    return file(
        blocks_of(rows(20_000)),
        index=lambda data: index_block(
            b"".join(
                entry(
                    *(FIRST_BLOCK, data),
                    offset=FIRST_BLOCK + 8 * n, type=0x101, count=8184, seq=n, first=8184 * n,
                )
                for n in range(20_000)
            )
        ),
    )  # fmt: skip


# ---- what inflates ----


@forgery
def notes_that_inflate() -> bytes:
    texts = [writer.note(f"key {n}", chr(97 + n % 26) * 3_900_000) for n in range(26)]
    blocks = [dense(2, [text]) for text in texts]
    every = [patched(blocks[n % 26], seq=n + 1) for n in range(400)]
    return file([*every, *blocks_of(rows(100))])


@forgery
def notes_of_escapes_that_inflate() -> bytes:
    texts = [writer.note(f"key {n}", "\u202e" * 1_300_000) for n in range(26)]
    blocks = [dense(2, [text]) for text in texts]
    return file([*blocks, *blocks_of(rows(100))], names=base_names())


@forgery
def names_of_nothing_that_inflate() -> bytes:
    empty = writer.record(99, b"") * 250_000
    block = dense(2, [empty])
    return file([*(patched(block, seq=n + 1) for n in range(300)), *blocks_of(rows(100))])


@forgery
def the_same_sites_again_and_again() -> bytes:
    sites = b"".join(writer.site(n, n - 1, 1, n) for n in range(2, 1000)) * 120
    block = dense(2, [sites])
    return file(
        [*blocks_of(rows(100)), *(patched(block, seq=n + 2) for n in range(60))],
        names=base_names(),
    )


@forgery
def damaged_names_that_are_searched_for_the_next_one() -> bytes:
    """At each eighth byte something that looks like a record up to the end, with a wrong sum."""
    room = 500_000
    data = b"".join(
        struct.pack("<IIIB3x", room - at, room - at - 16, 1, 1) for at in range(0, room, 16)
    )
    block = dense(2, [data], seq=1)
    return file([*blocks_of(rows(100)), *(patched(block, seq=n + 1) for n in range(6))])


@forgery
def one_long_name_for_many_sites() -> bytes:
    names = [
        writer.code(1, "/home/user/" + "x" * 1_900_000 + ".py", "f" * 1_900_000),
        *(writer.site(n, 0, 1, n) for n in range(2, 60_000)),
    ]
    site = 2 + np.arange(60_000) % 59_998
    return file(blocks_of(rows(60_000, site=site)), names=names)


@forgery
def long_names_of_everything() -> bytes:
    long = "y" * 60_000
    names = [writer.code(n, f"/home/{n}{long}.py", f"f{n}{long}") for n in range(1, 100)]
    names += [writer.site(n + 1, n, n, n) for n in range(1, 100)]
    names += [writer.label(n, f"label {n} {long}") for n in range(3, 100)]
    names += [writer.thread(n, f"thread {n} {long}") for n in range(1, 50)]
    names += [writer.note(f"pool.{n}", f"pool {n} {long}") for n in range(1, 50)]
    names += [writer.note(f"op.{n}", f"op {n} {long}") for n in range(16, 50)]
    count = np.arange(20_000)
    events = rows(20_000, site=2 + count % 99)
    marks = rows(2000, MARK, object=3 + np.arange(2000) % 97, arg=np.arange(2000))
    return file([*blocks_of(events), *blocks_of(marks, thread=2)], names=names)


def fold_header(**about: int) -> Header:
    """A header that names checkpoint 7."""
    return Header(fold_number=7, folded_events=1000, **about)


def checkpoint(blocks: list[bytes]) -> list[bytes]:
    """Blocks of checkpoint 7, as many as there are."""
    return [patched(block, seq=7, first=len(blocks)) for block in blocks]


@forgery
def checkpoint_of_fifty_million_objects() -> bytes:
    per_block = 4_000_000 // 40
    zeros = np.zeros((per_block, 5), "<u8")
    zeros[:, :3] = 2
    zeros[:, 3] = 64
    live = dense(3, [writer.planes(zeros.tobytes(), 40)], thread=5, count=per_block)
    blocks = [patched(live, part=n) for n in range(50)]
    return file(
        [*checkpoint(blocks), *blocks_of(rows(100))], names=base_names(), header=fold_header()
    )


@forgery
def checkpoint_of_samples_sites_threads_and_marks() -> bytes:
    def section(number: int, size: int, words: np.ndarray) -> bytes:
        data = words.tobytes()
        return dense(3, [writer.planes(data, size)], thread=number, count=len(data) // size)

    at = np.arange(100_000, dtype="<u8")
    samples = np.zeros((100_000, 3), "<u8")
    samples[:, 0], samples[:, 1], samples[:, 2] = FIRST + 400, 1 + at % 30, 10_000
    sites = np.zeros((50_000, 7), "<u8")
    sites[:, :6], sites[:, 6] = 1, 0xFFFF_FFFE
    threads = np.stack([np.full(100_000, 5, "<u8"), at], axis=1)
    marks = rows(100_000, MARK, object=3, step=0)
    kinds = [
        section(3, 24, samples),
        section(1, 56, sites),
        section(2, 16, threads),
        section(4, 32, marks),
    ]
    blocks = [patched(block, part=n) for n in range(20) for block in kinds]
    return file(
        [*checkpoint(blocks), *blocks_of(rows(100))], names=base_names(), header=fold_header()
    )


@forgery
def checkpoint_with_impossible_sums() -> bytes:
    totals = struct.pack("<19Q", *(FULL, 2**63, FULL, 2**63, 0, FULL, 1, 2**63, FULL, 2**62, FULL,
                                   FULL, FULL, 0, FULL, FULL, FULL, FULL, 2**63))  # fmt: skip
    live = struct.pack("<QQQQIHBB", FULL, FULL, FULL, FULL, 2**32 - 1, 65535, 255, 255) * 3
    sites = struct.pack("<6QII", *[FULL] * 6, 2**32 - 1, 255)
    threads = struct.pack("<QQQQ", FULL, FULL, FULL, 1)
    samples = struct.pack("<9Q", *(FULL,) * 9)
    blocks = writer.fold_blocks(7, {0: totals, 1: sites, 2: threads, 3: samples, 5: live})
    return file([*blocks, *blocks_of(rows(100))], names=base_names(), header=fold_header())


@forgery
def checkpoint_with_impossible_blocks() -> bytes:
    """Sums that can be, and sampled blocks of which the second is freed."""
    totals = struct.pack("<20Q", 3, *[0] * 12, 1, *[0] * 6)
    heap = b"".join(struct.pack("<QQQIHBB", 5, 64, 100, 0, 1, 255, kind) for kind in (1, 2))
    threads = struct.pack("<QQ", 3, 1)
    blocks = writer.fold_blocks(7, {0: totals, 2: threads, 6: heap})
    return file([*blocks, *blocks_of(rows(100))], names=base_names(), header=fold_header())


@forgery
def checkpoint_where_one_object_passed_a_million_times() -> bytes:
    """Halving by a hash of the number leaves all of them or none."""
    totals = struct.pack("<20Q", 3, *[0] * 11, 5, 1, *[0] * 6)
    one = struct.pack("<QQQQIIBB6x", 0, 5, 6, 100, 0, 0, 1, 0)
    threads = struct.pack("<QQ", 3, 1)
    blocks = writer.fold_blocks(7, {0: totals, 2: threads, 7: one * 1_000_000})
    return file([*blocks, *blocks_of(rows(100))], names=base_names(), header=fold_header())


@forgery
def checkpoint_of_blocks_that_stand_for_too_many() -> bytes:
    """Sampled blocks at one address, each as large as can be, that stand for as many as can be."""
    totals = struct.pack("<20Q", 4096, *[0] * 12, 1, *[0] * 6)
    one = struct.pack("<QQQIHBB", 2**64 - 1, 64, 1 << 52, 0, 65535, 255, 1)
    threads = struct.pack("<QQ", 4096, 1)
    blocks = writer.fold_blocks(7, {0: totals, 2: threads, 6: one * 4096})
    return file([*blocks, *blocks_of(rows(100))], names=base_names(), header=fold_header())


@forgery
def sixty_million_events() -> bytes:
    events = rows(8184, SCOPE_ENTER, object=5, device=0, step=0)
    (block,) = list(blocks_of(events))
    block = dense(1, columns_of(block), codec=1, count=8184, thread=1)
    count = (MOST_BYTES - 600_000) // len(block)
    return file(
        [patched(block, seq=n + 1, first=8184 * n) for n in range(count)], names=base_names()
    )


def columns_of(block: bytes) -> list[bytes]:
    """The columns of a block, inflated."""
    sizes, at, found = struct.unpack_from("<16I", block, 56), 128, []
    for stored, raw in zip(sizes[::2], sizes[1::2], strict=True):
        piece = block[at : at + stored]
        found.append(piece if stored == raw else zlib.decompress(piece))
        at += stored
    return found


def repeated(events: np.ndarray, count: int) -> Iterator[bytes]:
    """The same 8,184 events again and again, stored as small as can be, later each time."""
    (block,) = list(blocks_of(events))
    block = dense(1, columns_of(block), codec=1, count=len(events), thread=1)
    begin, end = int(events["ticks"][0]), int(events["ticks"][-1])
    for n in range(count):
        later = n * (end - begin + 400)
        yield patched(block, seq=n + 1, first=len(events) * n, begin=begin + later, end=end + later)


def room(count: int) -> list[bytes]:
    """Free slots: a longer file may hold more."""
    return [writer.slot(0, b"", seq=n + 1) for n in range(count)]


@forgery
def three_million_allocations_without_a_free() -> bytes:
    return file(repeated(rows(8184, step=4), 400), names=base_names(), slots=room(2))


@forgery
def twelve_million_events_that_are_folded() -> bytes:
    kind = np.tile([ALLOC, FREE], 4092).astype("u1")
    events = rows(8184, kind, object=64 * (1 + np.arange(8184) // 2 % 9), step=4)
    return file(repeated(events, 1500), names=base_names(), slots=room(4))


# ---- many tiny legal things ----


@forgery
def many_sites_in_deep_stacks() -> bytes:
    """Chains of 1,000 frames, an allocation at each of them."""
    at = np.arange(2, 150_000)
    names = fast_sites(at, np.where(at % 1000 == 2, 0, at - 1), at % 7)
    site = 2 + np.arange(149_998)
    return file(blocks_of(rows(149_998, site=site)), names=[*base_names(), *names])


@forgery
def many_leaves_of_one_deep_stack() -> bytes:
    """Below one stack of 1,020 frames as many lines as fit, an allocation at each of them."""
    at = np.arange(2, 150_000)
    names = fast_sites(at, np.where(at == 2, 0, np.minimum(at - 1, 1021)), at)
    site = 1022 + np.arange(148_978)
    return file(blocks_of(rows(148_978, site=site)), names=[*base_names(), *names])


def fast_sites(number: np.ndarray, parent: np.ndarray, line: np.ndarray) -> list[bytes]:
    """Records of many sites of code 1, made a few times faster than one by one."""
    payload = np.stack([number, parent, np.ones_like(number), line], axis=1).astype("<u4")
    head = struct.Struct("<IIIB3x")
    return [head.pack(32, 16, zlib.crc32(one), 2) + one for one in map(np.ndarray.tobytes, payload)]


@forgery
def many_lines_that_grow() -> bytes:
    """Below one deep stack 60,000 lines, each of which keeps an object now and then."""
    lines, deep = 60_000, 1000
    at = np.arange(deep + lines)
    names = fast_sites(2 + at, np.where(at == 0, 0, np.minimum(at + 1, deep + 1)), at % 65_000)
    site = 2 + deep + np.arange(13 * lines) % lines
    return file(
        blocks_of(rows(13 * lines, site=site, step=4000)), names=[*base_names()[:-1], *names]
    )


@forgery
def a_stack_of_twenty_thousand_frames() -> bytes:
    """As deep as no recorder writes; every frame allocates, and all of it is alive."""
    names = [writer.site(n, n - 1 if n > 2 else 0, 1, n) for n in range(2, 20_002)]
    site = 2 + np.arange(160_000) % 20_000
    return file(blocks_of(rows(160_000, site=site)), names=[*base_names(), *names])


@forgery
def a_library_stack_of_twenty_thousand_frames() -> bytes:
    """No frame is the user's, so that no walk along the callers ends early."""
    names = [
        writer.code(1, "/usr/lib/python3.12/site-packages/a.py", "f"),
        *(writer.site(n, n - 1 if n > 2 else 0, 1, n) for n in range(2, 20_002)),
    ]
    site = 2 + np.arange(160_000) % 20_000
    return file(blocks_of(rows(160_000, site=site)), names=names)


@forgery
def sites_with_the_highest_numbers() -> bytes:
    top = 2**32 - 1
    names = [writer.site(top, 0, 1, 5), writer.site(top - 1, 2, 1, 2**32 - 1)]
    names += [writer.site(n * 10_000_000, 0, n, n) for n in range(1, 400)]
    site = np.array([2, top, top - 1, top - 2, 10_000_000, 3_990_000_000] * 500)
    return with_events(rows(3000, site=site), names)


@forgery
def sites_that_are_their_own_callers() -> bytes:
    names = [writer.site(5, 5, 1, 1), writer.site(6, 7, 1, 1), writer.site(7, 6, 1, 1)]
    names += [writer.site(8, 2**32 - 1, 1, 1), writer.site(0, 5, 1, 1), writer.site(1, 0, 1, 1)]
    names += [writer.site(9, 8, 2**32 - 1, 1), writer.site(10, 3, 0, 0)]
    return with_events(rows(3000, site=np.arange(3000) % 13), names)


@forgery
def many_codes() -> bytes:
    names = [writer.code(n, f"/f{n}.py", f"g{n}") for n in range(1, 60_000)]
    names += [writer.site(n + 1, 0, n, n) for n in range(1, 60_000)]
    return file(blocks_of(rows(59_998, site=2 + np.arange(59_998))), names=names)


@forgery
def many_threads_in_the_names() -> bytes:
    names = [
        writer.thread(n, f"t{n}", ticks=FULL - n, os_id=FULL)
        for n in range(2**32 - 1, 2**32 - 90_000, -1)
    ]
    return with_events(rows(3000), names)


@forgery
def many_threads_with_events() -> bytes:
    blocks = (
        writer.events_block(
            rows(3, step=4), thread=1 + n * 2000, thread_first=0, seq=n + 1, time_shift=2
        )
        for n in range(7000)
    )
    return file(blocks, names=base_names())


@forgery
def many_marks_with_a_label_each() -> bytes:
    count = 60_000
    names = [writer.label(n + 4, f"l{n}") for n in range(count)]
    at = np.arange(count)
    marks = rows(count, MARK, object=at + 4, arg=at, device=0)
    return file(
        [*blocks_of(marks), *blocks_of(rows(3000), thread=2)], names=[*base_names(), *names]
    )


@forgery
def many_marks_with_one_label() -> bytes:
    count = MANY
    marks = rows(count, MARK, object=3, arg=np.arange(count), device=0)
    marks["arg"][::7] = FULL
    return file([*blocks_of(rows(3000), thread=2), *blocks_of(marks)], names=base_names())


@forgery
def many_objects() -> bytes:
    return with_events(rows(1_000_000, arg=np.arange(1_000_000) % 5 * 1000))


@forgery
def many_objects_that_are_freed_at_once() -> bytes:
    kind = np.tile([ALLOC, FREE], 500_000).astype("u1")
    events = rows(1_000_000, kind, object=64 * (1 + np.arange(1_000_000) // 2 % 50), arg=0)
    events["arg"][::2] = 4096
    return with_events(events)


@forgery
def many_objects_of_the_runtime_with_many_holders() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 65 == 0, ALLOC, ACQUIRE).astype("u1")
    arg = np.where(kind == ALLOC, 64, HOLDER * (2 + at % 10) + at)
    object = (1 << 28) + at // 65
    return with_events(
        rows(count, kind, object=object, arg=arg, device=CPU, count_after=1 + at % 65)
    )


@forgery
def many_objects_of_the_runtime_with_wrong_counts() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = (1 + at % 9).astype("u1")
    return with_events(
        rows(
            *(count, kind),
            object=(1 << 28) + at // 9 % 5000,
            arg=HOLDER * (1 + at % 13) + at % 700,
            device=CPU,
            count_after=at * 7919 % 65536,
        )
    )


@forgery
def many_open_scopes() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 2, FRAME_ENTER, SCOPE_ENTER).astype("u1")
    return with_events(
        rows(count, kind, object=at // 2 + 1, arg=3, device=0, count_after=np.minimum(at, 65535))
    )


@forgery
def many_scopes_that_overlap() -> bytes:
    """All are entered and then left in the same order: none lies within another one."""
    half = MANY // 2
    at = np.arange(2 * half)
    kind = np.where(at < half, SCOPE_ENTER, SCOPE_EXIT).astype("u1")
    return with_events(rows(2 * half, kind, object=at % half + 1, arg=3, device=0))


@forgery
def scopes_with_a_label_each() -> bytes:
    count = 60_000
    at = np.arange(2 * count)
    kind = np.where(at % 2, SCOPE_EXIT, SCOPE_ENTER).astype("u1")
    names = [writer.label(n + 4, f"s{n}") for n in range(count)]
    return with_events(rows(2 * count, kind, object=at // 2 + 1, arg=at // 2 + 4, device=0), names)


@forgery
def many_pools() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = (POOL_HIT + at % 6).astype("u1")
    arg = HOLDER * 7 + at // 6
    return with_events(rows(count, kind, object=at % 1000, arg=arg, device=0))


@forgery
def pools_and_ops_with_endless_numbers() -> bytes:
    digits = "9" * 6000
    names = [writer.note(f"pool.{digits}", "a"), writer.note(f"op.{digits}", "b")]
    names += [writer.note("pool.-1", "c"), writer.note("op.\u0663", "d"), writer.note("pool.", "")]
    names += [writer.note("gc.threshold", digits), writer.note("gc.frozen", digits)]
    names += [writer.note("stack_depth", digits), writer.note("rss_interval_ms", "nan")]
    names += [writer.note("holders", digits), writer.note("exit", digits)]
    names += [writer.note("python.stdlib", ":" * 100_000), writer.note("script", "\0")]
    return with_events(rows(3000), names)


@forgery
def many_ops_on_tapes() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 3 == 0, TAPE_RECORD, np.where(at % 3 == 1, TAPE_SAVE, ACQUIRE))
    op = 16 + at // 3 % 50_000
    arg = np.where(at % 3 == 0, 0, HOLDER * 9) + (op << 40) + at // 3
    return with_events(rows(count, kind.astype("u1"), object=at // 3 % 500, arg=arg, device=CPU))


@forgery
def passes_within_passes() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at < count // 2, BACKWARD_BEGIN, BACKWARD_END).astype("u1")
    return with_events(rows(count, kind, object=1 << 56, arg=at, device=0))


@forgery
def many_structs_with_many_fields() -> bytes:
    count = MANY
    at = np.arange(count)
    text = "Layer{" + ",".join(f"f{n}" for n in range(60_000)) + "}"
    kind = np.where(at % 2, HOLDERS, ALLOC).astype("u1")
    arg = np.where(at % 2, (3 << 40) + at, 0)
    events = rows(count, kind, object=(1 << 28) + at // 2, arg=arg, device=CPU)
    events["count"][1::2] = 65535
    held = rows(count, ACQUIRE, object=(1 << 28) + at // 2, arg=HOLDER * 4 + at, device=CPU)
    return file(
        [*blocks_of(events[: count // 2]), *blocks_of(held[: count // 2], thread=2)],
        names=[*base_names(), writer.label(3, text)],
    )


@forgery
def many_misuses() -> bytes:
    count = MANY
    at = np.arange(count)
    return with_events(
        rows(
            *(count, MISUSE),
            object=at,
            arg=HOLDER * (at % 14) + at,
            count_after=at % 25,
            device=CPU,
        )
    )


@forgery
def many_samples() -> bytes:
    count = MANY
    at = np.arange(count)
    return with_events(
        rows(count, SAMPLE, object=at % 30, arg=10_000_000 + at, device=0, count_after=0)
    )


@forgery
def many_devices() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 2, DEVICE_FREE, DEVICE_ALLOC).astype("u1")
    events = rows(count, kind, object=at % 999, arg=1 << 40, device=at % 256)
    more = rows(50_000, ALLOC, device=1 + np.arange(50_000) % 255)
    return file([*blocks_of(events), *blocks_of(more, thread=2)], names=base_names())


@forgery
def one_object_with_a_long_life() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 2, RELEASE, ACQUIRE).astype("u1")
    kind[0] = ALLOC
    return with_events(
        rows(count, kind, object=1 << 28, arg=HOLDER * 3 + at // 2, device=CPU, count_after=2)
    )


@forgery
def one_array_that_is_resized_all_the_time() -> bytes:
    count = MANY
    at = np.arange(count)
    kind = np.where(at % 2, REALLOC, FREE).astype("u1")
    arg = np.where(at % 2, np.where(at % 3, 8 + at, np.uint64(FULL).astype(np.int64)), 1)
    return with_events(rows(count, kind, object=64, arg=arg))


def chain_step(kind: int, name: bytes, edge: bytes, items: int = 0) -> bytes:
    return struct.pack("<BBHI", kind, len(edge), len(name), items) + edge + name


def raw_holding(
    snapshot: int, group: int, steps: bytes, count: int, addresses: bytes = b"", ticks: int = FIRST
) -> bytes:
    """A holding whose numbers nothing checks."""
    head = struct.pack(
        "<QIBBHQQQIHBB",
        *(ticks, snapshot, 5, 0, count, 5, 1 << 40, FULL, group, len(addresses) // 8, 1, 0),
    )
    return writer.record(6, head + addresses + steps)


@forgery
def chains_of_sixty_thousand_steps() -> bytes:
    steps = chain_step(1, b"m", b"x") + chain_step(10, b"c.C", b"next") * 60_000
    cycle = chain_step(17, b"c.C", b".next" * 50, 2**32 - 1) * 3000
    names = []
    for snapshot in range(1, 12):
        names += [raw_holding(snapshot, group, steps, 60_001) for group in range(3)]
        names += [raw_holding(snapshot, 9, cycle, 3000)]
        names += [writer.holding_totals(snapshot, FIRST + 1000)]
    return with_events(rows(3000), names)


@forgery
def many_snapshots() -> bytes:
    names = []
    for snapshot in range(1, 12_000):
        names.append(
            writer.holding(snapshot, 0, FIRST + snapshot, [(1, "m", "x"), (5, "dict", "[]")], [64])
        )
        names.append(writer.holding_totals(snapshot, FIRST + snapshot))
    return with_events(rows(3000), names)


@forgery
def snapshots_of_many_addresses() -> bytes:
    addresses = (np.arange(65_535, dtype="<u8") % 3000 * 64 + 64).tobytes()
    steps = chain_step(1, b"m", b"x") + chain_step(6, b"list", b"[]", 9)
    names = []
    for snapshot in range(1, 12):
        names += [raw_holding(snapshot, group, steps, 2, addresses) for group in range(6)]
        names += [writer.holding_totals(snapshot, FIRST + 1000)]
    return with_events(rows(3000), names)


@forgery
def chains_with_strange_steps() -> bytes:
    digits = b"9" * 6000
    steps = [
        chain_step(2, b"f\n" + digits + b"\n/x.py", b"v"),
        chain_step(2, b"f\n\xd9\xa3\n/x.py", b"v"),
        chain_step(9, b"deque\n" + digits, b"[]"),
        chain_step(11, b"m.f\n" + digits, b"[]", 2**32 - 1),
        chain_step(0, b"", b""),
        chain_step(255, b"\xff\xfe" * 100, b"\x1b[2J", 5),
        chain_step(17, b"", b""),
    ]
    names = [raw_holding(1, n, step, 1, struct.pack("<Q", 64)) for n, step in enumerate(steps)]
    names += [raw_holding(1, 20, b"", 0), raw_holding(1, 21, b"", 0, ticks=FULL)]
    names += [writer.holding_totals(1, FIRST, arrays=FULL, held_bytes=FULL, used_bytes=FULL)]
    return with_events(rows(3000), names)


# ---- numbers that cannot be ----


@forgery
def sizes_that_no_memory_has() -> bytes:
    sizes = np.array([FULL, 2**63, 2**63 - 1, 2**62, 1 << 53, 0, 8, FULL - 1], np.uint64)
    at = np.arange(8000)
    kind = np.where(at % 11 == 10, FREE, np.where(at % 13 == 12, REALLOC, ALLOC)).astype("u1")
    device = np.array([1, 2, 3, 16, 17, 19, 32, 255])[at // 8 % 8]
    return with_events(rows(8000, kind, arg=sizes[at % 8], device=device, object=64 + at % 3000))


@forgery
def sizes_in_a_slot_that_is_still_written() -> bytes:
    sizes = np.array([FULL, 2**63, 1 << 52, (1 << 52) + 1, 2**62], np.uint64)
    events = rows(5000, arg=sizes[np.arange(5000) % 5])
    return file(slots=[writer.events_slot(events, thread=1, seq=1)], names=base_names())


@forgery
def every_number_at_its_highest() -> bytes:
    """Every kind of event with the highest number in each of its fields."""
    at = np.arange(36 * 200)
    kind = (1 + at % 36).astype("u1")
    events = rows(len(at), kind, object=FULL, arg=FULL, site=2**32 - 1, count_after=65535)
    events["device"] = at // 36 % 256
    return with_events(events)


@forgery
def every_kind_with_every_device() -> bytes:
    at = np.arange(36 * 256 * 6)
    kind = (1 + at % 36).astype("u1")
    arg = np.array([0, 1, 8, 1 << 40, HOLDER * 9 + (20 << 40), FULL - 7], np.uint64)
    events = rows(len(at), kind, object=at % 300, arg=arg[at // 9216], site=at % 9)
    events["device"], events["count"] = at // 36 % 256, at % 30
    return with_events(events)


@forgery
def metrics_that_no_memory_has() -> bytes:
    at = np.arange(30_000)
    values = np.array([FULL, 2**63, 0, 1, 2**53], np.uint64)
    metric = np.array([*range(1, 30), 63, 64, 65, FULL, 2**63], np.uint64)
    events = rows(30_000, SAMPLE, object=metric[at % len(metric)], arg=values[at // 7 % 5])
    return file([*blocks_of(events), *blocks_of(rows(3000), thread=2)], names=base_names())


@forgery
def times_at_the_end_of_all_numbers() -> bytes:
    ticks = np.array([FULL - 10_000 + n for n in range(3000)], np.uint64)
    early = rows(3000, ticks=np.arange(3000, dtype=np.uint64))
    return file(
        [*blocks_of(rows(3000, ticks=ticks)), *blocks_of(early, thread=2)], names=base_names()
    )


@forgery
def times_that_wrap() -> bytes:
    events = rows(9000, step=2**60 - 1)
    return with_events(events)


@forgery
def a_block_that_says_other_times_than_it_holds() -> bytes:
    blocks = [
        patched(block, begin=FULL - n, end=n) for n, block in enumerate(blocks_of(rows(30_000)))
    ]
    return file(blocks, names=base_names())


def _clock(**about: int) -> bytes:
    samples = rows(6000, SAMPLE, object=1 + np.arange(6000) % 28, arg=1 << 30, device=0)
    return file(
        [*blocks_of(rows(20_000)), *blocks_of(samples, thread=2)],
        names=base_names(),
        header=Header(**about),
    )


@forgery
def a_clock_without_calibration() -> bytes:
    return _clock(first_ticks=FULL, first_ns=FULL, last_ticks=0, last_ns=0)


@forgery
def a_clock_as_slow_as_can_be() -> bytes:
    return _clock(first_ticks=0, first_ns=0, last_ticks=2**53, last_ns=2**53 * 999)


@forgery
def a_clock_that_ends_late() -> bytes:
    return _clock(last_ticks=FULL, last_ns=FULL, created_unix_ns=FULL, time_shift=32)


@forgery
def a_header_of_highest_numbers() -> bytes:
    return _clock(
        created_unix_ns=FULL, pid=2**32 - 1, parent_pid=2**32 - 1, clock=2**32 - 1,
        time_shift=2**32 - 1, slot_count=FULL, lost_events=FULL, limit_bytes=FULL,
        folded_events=FULL, index_offset=FULL, total_events=FULL, calibration_seq=FULL,
    )  # fmt: skip


@forgery
def a_sealed_header_of_highest_numbers() -> bytes:
    return _clock(
        created_unix_ns=2**63, state=2, index_offset=FULL, fold_number=FULL, total_events=FULL
    )


# ---- slots ----


@forgery
def slots_that_lie() -> bytes:
    payload = rows(8000).tobytes()
    lies = [
        writer.slot(1, payload, seq=1, thread=2**32 - 1, count=2**32 - 1, closed=True),
        writer.slot(1, payload, seq=FULL, thread=0, thread_first=FULL),
        writer.slot(1, payload, seq=3, thread=1, thread_first=FULL, ticks=(FULL, 0), closed=True),
        writer.slot(7, payload, seq=4),
    ]
    lies += [bytearray(writer.slot(kind, payload, seq=9)) for kind in (2, 3)]
    for slot in lies[-2:]:
        struct.pack_into("<I", slot, 36, 2**32 - 1)
    return file(blocks_of(rows(100)), slots=[bytes(slot) for slot in lies], names=base_names())


@forgery
def slots_of_broken_blocks() -> bytes:
    """A sound block of nothing, then eight bytes of damage, as often as it fits."""
    empty = dense(5, [])
    payload = (empty + b"TLBKTLBK") * (262_000 // 136)
    slots = [writer.slot(2, payload, seq=n) for n in range(1, 6)]
    return file(blocks_of(rows(100)), slots=slots, names=base_names())


@forgery
def slots_of_magic_numbers() -> bytes:
    slots = [writer.slot(2, b"TLBK" * 65_000, seq=n) for n in range(1, 6)]
    return file(blocks_of(rows(100)), slots=slots, names=base_names())


@forgery
def many_blocks_of_one_event() -> bytes:
    (block,) = list(blocks_of(rows(1)))
    return file((patched(block, seq=n + 1, first=2 * n) for n in range(9000)), names=base_names())


@forgery
def many_blocks_with_the_same_events() -> bytes:
    (block,) = list(blocks_of(rows(8184, step=0, object=1)))
    block = dense(1, columns_of(block), codec=1, count=8184, thread=1)
    return file((patched(block, seq=n + 1, first=0) for n in range(5000)), names=base_names())


@forgery
def many_checkpoints() -> bytes:
    totals = writer.fold_blocks(1, {0: struct.pack("<19Q", *range(19))})[0]
    wrong = [patched(totals, seq=n + 1, first=2) for n in range(8000)]
    return file([*wrong, *blocks_of(rows(100))], names=base_names(), header=fold_header())


@cache
def build(name: str) -> bytes:
    """The bytes of a forged file."""
    return FORGERIES[name]()
