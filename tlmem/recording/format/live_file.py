"""Everything in a recording at one moment, also while the program is still writing it.

The moment is the time of the newest event in a first look at everything. Every event up to then
was committed before the second look, which is the one that counts: of a free and the allocation
before it in another thread, never only the free is seen.

Covers: the pieces of a growing file and of a time range, copies of what threads are writing,
reading again what was moved meanwhile, what is damaged.
Does not cover: decoding (``timeline``, ``symbols``, ``checkpoint``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tlmem.errors import TablesTooLarge, TooManyEvents
from tlmem.events import EVENT_DTYPE, Kind, Metric
from tlmem.recording.format import kept_sums, limits
from tlmem.recording.format.blocks import (
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    FOLD_BLOCK,
    META_BLOCK,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
    BadBlock,
    column,
    meta_records,
    parse_header,
    payload_of,
)
from tlmem.recording.format.checkpoint import (
    Checkpoint,
    Load,
    continued,
    divides_a_resize,
    fold,
    horizons,
    last_moments,
    missing_events,
    read_checkpoint,
    with_fewer_live,
)
from tlmem.recording.format.kept_sums import Identity, Kept, KeptSums, code_digest
from tlmem.recording.format.pairing import Known, Pairing, pair
from tlmem.recording.format.segments import (
    EVENTS_SLOT,
    HEADER_BYTES,
    META_SLOT,
    OPEN,
    SEALED,
    SLOT_PIECE,
    Directory,
    FileHeader,
    FrozenSource,
    Scanner,
    Source,
    read_header,
)
from tlmem.recording.format.symbols import Names
from tlmem.recording.format.timeline import (
    Loader,
    Timeline,
    in_turn,
    rows_of,
    without_heap,
)

RAW_SLOT = SLOT_PIECE + EVENTS_SLOT
_ROUNDS = 50
_MOST_COPIED = 1024
"""Slots; with more raw slots than this no program is running, the file was never compacted."""
_ATTEMPTS = 8
_LONGEST_SAMPLE_NS = 200_000_000
"""A sample that began longer before the end of a part is whole by then."""


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


@dataclass(frozen=True)
class Carried:
    """What a checkpoint does not say of objects that were allocated in earlier parts.

    Attributes:
        first: objects from this number on have events in the recording.
        folded: events that the file has only in sums.
        number: objects that replaced another one by a resize, ascending.
        resized_from: these other ones.
    """

    first: int
    folded: int
    number: np.ndarray
    resized_from: np.ndarray


@dataclass
class Contents:
    """What was read, and what was not intact.

    ``heap`` has the events of sampled blocks; the first ``older_heap`` of them are of an earlier
    part, or were folded.
    """

    header: FileHeader
    timeline: Timeline
    heap: Timeline
    names: Names
    checkpoint: Checkpoint
    problems: list[str] = field(default_factory=list)
    missing_events: int = 0
    span: tuple[int, int] = (0, 2**64 - 1)
    """First and last tick of what was read, both included."""
    carried: Carried | None = None
    """Of one part of a recording: see ``read_parts``."""
    older_heap: int = 0
    to_keep: tuple[Kept, bytes] | None = None
    """Sums that the next reading need not make again."""

    @cached_property
    def pairing(self) -> Pairing:
        """Which free ends which allocation."""
        return pair(self.timeline, self.checkpoint.known())

    def of_objects(self) -> Contents:
        """The same without what the table of objects is not made of."""
        timeline, pairing = self.timeline, self.pairing
        no, nothing = np.empty(0, np.uint8), np.empty(0, np.int32)
        short = Contents(
            *(self.header, replace(timeline, arg=no, count=no, kind=no, role=no), self.heap),
            *(self.names, self.checkpoint),
            carried=self.carried,
        )
        short.pairing = replace(
            pairing, events=nothing, row_of_event=nothing, action=no, unknown=nothing
        )
        return short


def is_empty(source: Source, header: FileHeader) -> bool:
    """Whether there is nothing to read: no piece with an event, no checkpoint."""
    if header.fold_number:
        return False
    pieces = Scanner(source).scan(header).of_type(EVENTS_BLOCK, RAW_SLOT)
    for piece in pieces:
        if piece["closed"] and piece["count"]:
            return False
        first_kind = source.read(int(piece["offset"]) + SLOT_HEADER_BYTES + 30, 1)
        if piece["type"] != EVENTS_BLOCK and first_kind not in (b"", b"\0"):
            return False
    return True


def read_contents(
    source: Source,
    start: float | None,
    stop: float | None,
    detail_events: int | None = None,
    bounded: bool = True,
    available: Callable[[], int] | None = None,
    sums: KeptSums | None = None,
) -> Contents:
    """Reads everything between ``start`` and ``stop`` seconds since the start.

    All but about ``detail_events`` of the latest events are folded while they are read; if
    ``bounded``, or if none are given, more are folded where the length of the file asks for it; see
    ``limits``. Of a range of time none are folded. What is kept in ``sums`` is not folded again.

    Raises:
        DamagedRecording: see ``Scanner.scan``.
        TooManyEvents: a range of time has more events than can be kept one by one.
        TablesTooLarge: the tables take more memory than ``available()`` bytes.

    A file that is folded or sealed meanwhile is read again, in the end from a copy in memory.
    """
    scanner = Scanner(source)
    detail = Detail.of(source.size(), detail_events, bounded, available)
    for attempt in range(_ATTEMPTS):
        pieces = gather(source, scanner)
        folded_meanwhile = read_header(source).fold_number != pieces.header.fold_number
        reading = _frozen(source, pieces.directory) if attempt else source
        copied = attempt > 0 and not folded_meanwhile and _still_there(scanner, pieces)
        if copied or attempt == 0 or attempt == _ATTEMPTS - 1:
            contents = _read(reading, pieces, start, stop, detail, sums)
            if copied or (not folded_meanwhile and _still_there(scanner, pieces)):
                if sums is not None and contents.to_keep is not None:
                    sums.keep(*contents.to_keep)
                return contents
    contents.problems.append("the file changed faster than it could be read; read it again")
    return contents


def _still_there(scanner: Scanner, pieces: Pieces) -> bool:
    """Whether all blocks and names are where they were, so that what was read there is right."""
    if pieces.header.state == SEALED:
        return True
    then = pieces.directory.pieces
    now = scanner.scan(read_header(scanner.source)).pieces
    places = set(
        zip(now["offset"].tolist(), now["seq"].tolist(), now["type"].tolist(), strict=True)
    )
    then = then[then["type"] != RAW_SLOT]
    return all(
        place in places
        for place in zip(
            then["offset"].tolist(), then["seq"].tolist(), then["type"].tolist(), strict=True
        )
    )


def _frozen(source: Source, directory: Directory) -> FrozenSource:
    """The source, with every block and all names that the directory lists copied to memory."""
    stretches = []
    for piece in directory.pieces[directory.pieces["type"] != RAW_SLOT]:
        inside = SLOT_HEADER_BYTES if piece["type"] == SLOT_PIECE + META_SLOT else 0
        stretches.append((int(piece["offset"]) + inside, int(piece["bytes"])))
    return FrozenSource(source, stretches)


def _read(
    source: Source,
    pieces: Pieces,
    start: float | None,
    stop: float | None,
    detail: Detail,
    sums: KeptSums | None = None,
) -> Contents:
    header, directory = pieces.header, pieces.directory
    problems = [*_header_problems(source, header), *directory.problems, *pieces.problems]
    whole = start is None and stop is None
    checkpoint = Checkpoint.none()
    if whole:
        checkpoint = read_checkpoint(
            source, directory.of_type(FOLD_BLOCK), header.fold_number, problems
        )
    events = directory.of_type(EVENTS_BLOCK, RAW_SLOT)
    first, last = span = _tick_range(header, start, stop)
    if pieces.newest_ticks is not None:
        last = min(last, pieces.newest_ticks)
        span = (first, last)
    loader = Loader(source, header, pieces.copies)
    consumed, shift = checkpoint.consumed, np.uint64(header.time_shift)

    begin, end = events["ticks_begin"] >> shift << shift, events["ticks_end"].copy()

    def load(first: int, last: int, whole: bool = False) -> Timeline:
        wanted = (end >= np.uint64(first)) & (begin <= np.uint64(last))
        return loader.load(events[wanted], consumed, first, last, whole)

    folded, to_keep = False, None
    identity = _identity_of(loader, directory, events, checkpoint)
    if sums is not None and directory.problems:
        sums = None
    while True:
        ends = horizons(events, detail.events, header.time_shift) if whole else []
        ends = [end for end in ends if end >= first]
        kept = sums.find(ends, identity) if ends and sums is not None and not folded else None
        if kept is not None:
            checkpoint, first, ends = kept.checkpoint, kept.first_ticks, ends[len(kept.ends) :]
        elif ends and sums is not None and not folded:
            # Of a file that grows the last cut is another one next time; all before it stay.
            stable = ends if header.state != OPEN else ends[:-1]
            about = (checkpoint, first, stable, load, events, detail)
            kept, sound = _folded(*about, loader)
            if sound:
                to_keep = kept, identity(stable[-1])
            checkpoint, first, ends = kept.checkpoint, kept.first_ticks, ends[len(stable) :]
        if ends:
            checkpoint, first, _ = fold(checkpoint, first, ends, load, events, detail.most_listed)
        folded = folded or bool(ends) or kept is not None
        _check_room(loader, events, first, last, detail)
        before = loader.problems.copy(), loader.bytes_left
        timeline = load(first, last, whole and not folded)
        affordable = detail.affordable(timeline, len(checkpoint.live))
        if affordable >= len(timeline):
            break
        if not whole or not 0 < affordable < detail.events:
            raise _too_many(source, len(timeline), affordable)
        # Older ones are folded, too, and what remains is read again.
        detail = replace(detail, events=affordable)
        checkpoint = with_fewer_live(checkpoint, detail.most_listed)
        loader.problems[:], loader.bytes_left = before
    missing = missing_events(events, consumed) - header.lost_events if folded else 0
    if missing > 0:
        loader.missing_events = missing
        problems.append(f"{missing} events are missing from the file; sums may be wrong")
    loader.problems[:] = dict.fromkeys(loader.problems)
    names = read_names(source, directory, problems)
    problems += timeline.problems
    exact, heap = without_heap(timeline)
    missing, older = loader.missing_events, checkpoint.heap_events()
    return Contents(
        *(header, exact, in_turn(older, heap), names, checkpoint, problems, missing, span),
        older_heap=len(older),
        to_keep=to_keep,
    )


def _identity_of(
    loader: Loader, directory: Directory, events: np.ndarray, before: Checkpoint
) -> Identity:
    """What gives a digest of all that folding up to a time depends on, each byte of it included."""
    header, source = loader.header, loader.source
    shift = np.uint64(header.time_shift)

    def identity(end: int) -> bytes:
        covered = events[events["ticks_begin"] >> shift << shift <= np.uint64(end)]
        folds = directory.of_type(FOLD_BLOCK)
        about = [code_digest(), header.created_unix_ns, header.pid, header.time_shift, end]
        about += [header.first_ticks, header.fold_number]
        if before.number:
            about.append(source.size())
        if (covered["type"] == RAW_SLOT).any():
            about += [header.state, header.last_ticks, header.last_ns, header.first_ns]
        digest = hashlib.sha256(repr(about).encode())
        for piece in np.concatenate([folds, covered]):
            offset = int(piece["offset"])
            digest.update(piece.tobytes())
            copy = loader.copies.get(offset) if piece["type"] == RAW_SLOT else None
            digest.update(copy or source.read(offset, int(piece["bytes"])))
        return digest.digest()

    return identity


def _folded(
    checkpoint: Checkpoint,
    first: int,
    ends: list[int],
    load: Load,
    events: np.ndarray,
    detail: Detail,
    loader: Loader,
) -> tuple[Kept, bool]:
    """Folds, and says whether it is worth keeping: long, whole, and the same next time."""
    stride, before = checkpoint.totals.live_stride, (loader.bytes_left, len(loader.problems))
    after, rest, settled = fold(checkpoint, first, ends, load, events, detail.most_listed)
    sound = (loader.bytes_left, len(loader.problems)) == before and not loader.cut_sites
    worth = after.totals.events - checkpoint.totals.events >= kept_sums.LEAST_EVENTS
    same = settled and sound and after.totals.live_stride == stride
    return Kept(after, rest, ends), bool(ends) and worth and same


@dataclass(frozen=True)
class Detail:
    """What is kept one by one: so many events, in so much memory, with so many older objects."""

    events: int
    memory: int = 2**63
    most_listed: int = 2**63
    available: Callable[[], int] | None = None

    @staticmethod
    def of(
        file_bytes: int,
        detail_events: int | None,
        bounded: bool,
        available: Callable[[], int] | None = None,
    ) -> Detail:
        """What a caller asks for, if ``bounded`` as far as the length of the file allows."""
        if detail_events is not None and not bounded:
            return Detail(detail_events, available=available)
        most = limits.detail_events(file_bytes)
        return Detail(
            most if detail_events is None else min(most, detail_events),
            limits.detail_memory(file_bytes),
            limits.most_listed(file_bytes),
            available,
        )

    def affordable(self, timeline: Timeline, listed: int) -> int:
        """How many of the latest events there is memory for, all of them if there is enough."""
        if (len(timeline) + listed) * max(limits.BYTES_OF_KIND.values()) <= self.memory:
            return len(timeline)
        of_kind = np.full(256, limits.BYTES_OF_AN_EVENT, np.float64)
        of_kind[list(limits.BYTES_OF_KIND)] = list(limits.BYTES_OF_KIND.values())
        taken = np.cumsum(of_kind[timeline.kind[::-1]])
        if taken[-1:].sum() + listed * limits.BYTES_OF_AN_OBJECT <= self.memory:
            return len(timeline)
        rest = self.memory * (1 - limits.SHARE_OF_LISTED)
        return int(np.searchsorted(taken, rest))


def _check_room(loader: Loader, events: np.ndarray, first: int, last: int, detail: Detail) -> None:
    """That no more events are kept one by one than there is memory for.

    Raises:
        TooManyEvents: there are more than a file of this length may take memory for.
        TablesTooLarge: there are more than fit into the memory that is available.
    """
    there = (events["ticks_end"] >= np.uint64(first)) & (events["ticks_begin"] <= np.uint64(last))
    source, count = loader.source, _claimed(events[there])
    if count > detail.events:  # a slot that is open counts as full, and each thread has one
        is_open = there & (events["type"] == RAW_SLOT) & (events["closed"] == 0)
        count = _claimed(events[there & ~is_open])
        count += sum(_committed(loader.slot(int(at))) for at in events["offset"][is_open])
    if count > detail.events + limits.EVENTS_BEYOND_DETAIL:
        raise _too_many(source, count, detail.events)
    needed = count * limits.BYTES_OF_TABLES
    if detail.available is None or count < limits.EVENTS_OF_ANY_MEMORY:
        return
    available = detail.available()
    if needed > available:
        raise TablesTooLarge(
            f"the tables of {count:,} events of {source.path} take about {needed / 1e9:.1f} GB, "
            f"and {available / 1e9:.1f} GB of memory are available; read a shorter time (start= "
            "and stop=), one part after another (recording.parts()), or Arrow batches "
            "(recording.to_arrow())"
        )


def _claimed(events: np.ndarray) -> int:
    """How many events pieces have by what they say, an open slot as many as there is room for."""
    return int(events["count"].clip(max=EVENTS_PER_SLOT).sum(dtype=np.int64))


def _too_many(source: Source, count: int, most: int) -> TooManyEvents:
    return TooManyEvents(
        f"{source.path} has {count} events in this time, and a file of {source.size()} bytes may "
        f"take memory for {most}; choose a shorter time, or give tlmem.read(..., "
        "detail_events=N) the number"
    )


def read_parts(
    source: Source, start: float | None, stop: float | None, part_events: int
) -> Iterator[tuple[Contents, bool]]:
    """Everything from ``start`` to ``stop``, as parts of about ``part_events`` events, in order.

    The checkpoint of a part has the sums of all before it, and every object that was alive; samples
    and marks are only those of the part, but for the first one, which has those that the file had
    folded. No part ends within a resize, nor, where that can be, within a sample. What happens to
    the file meanwhile is damage.

    Returns:
        Each part, and whether it is the last one.
    Raises:
        DamagedRecording: see ``Scanner.scan``.
    """
    scanner = Scanner(source)
    pieces = gather(source, scanner)
    header, directory = pieces.header, pieces.directory
    problems = [*_header_problems(source, header), *directory.problems, *pieces.problems]
    checkpoint = Checkpoint.none()
    if start is None and stop is None:
        folds = directory.of_type(FOLD_BLOCK)
        checkpoint = read_checkpoint(source, folds, header.fold_number, problems)
    events = directory.of_type(EVENTS_BLOCK, RAW_SLOT)
    first, last = _tick_range(header, start, stop)
    if pieces.newest_ticks is not None:
        last = min(last, pieces.newest_ticks)
    loader = Loader(source, header, pieces.copies)
    consumed, shift_bits = checkpoint.consumed, header.time_shift
    shift, missing = np.uint64(shift_bits), 0
    if start is None and stop is None:
        missing = max(missing_events(events, consumed) - header.lost_events, 0)
    if missing:
        problems.append(
            f"{missing} events are missing from the file; what follows from them is unknown"
        )
    names = read_names(source, directory, problems)
    goes_on, folded = last_moments(events), checkpoint.totals
    carried = Carried(folded.next_object, folded.events, *np.empty((2, 0), np.int64))
    heap_alive = checkpoint.heap_events()
    ends = [
        end for end in horizons(events, part_events, shift_bits, part_events) if first <= end < last
    ]
    there = (events["ticks_end"] >= np.uint64(first)) & (events["ticks_begin"] <= np.uint64(last))
    events = events[there]
    for end in [*ends, last]:
        if end < first and end != last:
            continue
        wanted = events["ticks_end"] >= np.uint64(first)
        wanted &= events["ticks_begin"] >> shift << shift <= np.uint64(end)
        timeline = loader.load(events[wanted], consumed, first, end, whole=False)
        if end < last:
            if divides_a_resize(timeline, end, goes_on):
                continue
            timeline, end = _before_a_sample(timeline, end, goes_on, header.ns_per_tick)
        exact, heap = without_heap(timeline)
        with_alive = in_turn(heap_alive, heap)
        found = list(dict.fromkeys([*problems, *loader.problems]))
        part = Contents(
            *(header, exact, with_alive, names, checkpoint, found, missing, (first, end), carried),
            older_heap=len(heap_alive),
        )
        yield part, end >= last
        if end >= last:
            return
        pairing = part.pairing
        checkpoint = continued(checkpoint, exact, heap, pairing, end)
        checkpoint = replace(checkpoint, samples=checkpoint.samples[:0], marks=checkpoint.marks[:0])
        carried = _carried(carried, pairing, checkpoint.live["number"].astype(np.int64))
        of_heap = pair(with_alive, Known.nothing())
        heap_alive = rows_of(with_alive, of_heap.begins[of_heap.ended_by < 0])
        first = end + 1


def _before_a_sample(
    timeline: Timeline, end: int, goes_on: dict[int, int], ns_per_tick: float
) -> tuple[Timeline, int]:
    """A part without its last sample, if that might go on after its end, and where it ends then."""
    samples = np.flatnonzero(timeline.kind == Kind.SAMPLE)
    begins = samples[timeline.object[samples] == Metric.ANON]
    if not len(begins):
        return timeline, end
    begin = int(timeline.ticks[begins[-1]])
    cut = int(np.searchsorted(timeline.ticks, begin))
    if cut == 0 or (end - begin) * ns_per_tick > _LONGEST_SAMPLE_NS:
        return timeline, end
    shorter = rows_of(timeline, slice(0, cut))
    return (
        (timeline, end) if divides_a_resize(shorter, begin - 1, goes_on) else (shorter, begin - 1)
    )


def _carried(before: Carried, pairing: Pairing, alive: np.ndarray) -> Carried:
    """What is known of the objects that are alive after a part."""
    number, origin = pairing.number, pairing.resized_from
    new = np.flatnonzero(origin >= 0)
    numbers = np.concatenate([before.number, number[new]])
    resized_from = np.concatenate([before.resized_from, number[origin[new]]])
    there = np.isin(numbers, alive)
    return replace(before, number=numbers[there], resized_from=resized_from[there])


def _tick_range(header: FileHeader, start: float | None, stop: float | None) -> tuple[int, int]:
    """First and last tick of a range of seconds, both included."""
    step = 1 << header.time_shift
    origin = header.first_ticks >> header.time_shift << header.time_shift
    first = 0 if start is None else origin + int(start * 1e9 / header.ns_per_tick)
    last = 2**64 - 1 if stop is None else origin + int(stop * 1e9 / header.ns_per_tick) - step
    return min(max(first, 0), 2**64 - 1), min(max(last, 0), 2**64 - 1)


def _header_problems(source: Source, header: FileHeader) -> list[str]:
    problems = []
    if not header.sound:
        problems.append("the file header is damaged; process id and clock may be wrong")
    if header.clock == 1 and not header.calibrated:
        problems.append("the clock was never calibrated; times are in ticks of the CPU counter")
    if header.lost_events:
        problems.append(f"{header.lost_events} events could not be recorded")
    if source.size() < HEADER_BYTES:
        problems.append("the file was cut inside its header")
    return problems


def read_names(
    source: Source, directory: Directory, problems: list[str], only: int | None = None
) -> Names:
    """Everything that the file names, in the order in which it was named.

    Args:
        problems: what is damaged is added here, a sentence each.
        only: records of this type and no others, for which most of the work is saved.
    """
    file_bytes = source.size()
    names = Names(
        largest_site=limits.largest_site(file_bytes),
        chain_steps_left=limits.most_chain_steps(file_bytes),
    )
    room = most = limits.most_names(file_bytes)
    pieces = directory.of_type(META_BLOCK, SLOT_PIECE + META_SLOT)
    for piece in pieces[np.argsort(pieces["seq"], kind="stable")]:
        offset, size = int(piece["offset"]), int(piece["bytes"])
        block = None
        if piece["type"] == META_BLOCK:
            try:
                data = source.read(offset, size)
                block = parse_header(data)
                size = block.columns[0][1]
            except BadBlock as error:
                problems.append(f"the names at byte {offset} were dropped: {error}")
                continue
        room -= size
        if room < 0:
            problems.append(
                f"the names from byte {offset} on were left out: a file of {file_bytes} bytes has "
                f"at most {most} bytes of them; record the program again"
            )
            break
        if block is not None:
            try:
                records = column(block, payload_of(block, data), 0)
            except BadBlock as error:
                problems.append(f"the names at byte {offset} were dropped: {error}")
                continue
        else:
            records = source.read(offset + SLOT_HEADER_BYTES, size)
            names.damaged += len(records) < size
        found = meta_records(records)
        names.add(found if only is None else (r for r in found if r and r.type == only))
    if names.shorten_codes(limits.most_shown_names(file_bytes), limits.SHORT_NAME):
        problems.append(
            f"names of files and functions were cut to {limits.SHORT_NAME} characters: those of "
            f"all lines have more than a file of {file_bytes} bytes can be shown with"
        )
    if names.cut_deep_stacks(limits.MOST_STACK_DEPTH):
        problems.append(
            f"stacks of more than {limits.MOST_STACK_DEPTH} frames were cut: no recorder writes "
            "them; record the program again"
        )
    if names.damaged:
        problems.append(f"{names.damaged} names are damaged; some lines may be unknown")
    return names


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
    count = _committed(slot)
    if not count:
        return 0
    return int(np.frombuffer(slot, EVENT_DTYPE, count, SLOT_HEADER_BYTES)["ticks"][-1])


def _committed(slot: bytes) -> int:
    """How many events a slot has: those before the first empty one."""
    room = min((len(slot) - SLOT_HEADER_BYTES) // EVENT_DTYPE.itemsize, EVENTS_PER_SLOT)
    if room <= 0:
        return 0
    empty = np.frombuffer(slot, EVENT_DTYPE, room, SLOT_HEADER_BYTES)["kind"] == 0
    return int(empty.argmax()) if empty.any() else room
