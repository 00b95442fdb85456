"""The allocations and frees of the host's memory as the player takes them, and what was sampled.

Covers: blocks with their threads, alignments and resizes, in the order of the recording; pauses;
the moments at which resident memory is asked for; what the recorded run had at these. Does not
cover: running them (``hosts``).

Order is that of the recording; threads take turns, as they did there.
See also: ``native/player/player.c``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import HOST, Blocks, Curve, blocks_of
from tlmem.events import Device
from tlmem.replaying.heap_blocks import heap_blocks
from tlmem.replaying.trace import EVENT_DTYPE, LARGEST_BLOCK, CannotReplay
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

ALLOC, FREE, RESIZE, POINT, END, PAUSE, BEGIN = 1, 2, 3, 4, 5, 6, 7
"""Kinds of events, as in ``native/player/player.c``; ``lane`` is the thread."""
ALIGNED, NUMPY, ADVISED = 1, 2, 8
MAGIC = b"TLMPLAY1"
MOST_BLOCKS = 1 << 28
MOST_THREADS = 1 << 16
MOST_POINTS = 1_000
"""Moments at which resident memory is asked for, those of the recorded samples not counted."""
MOST_SAMPLES = 2_000
RISE = 1.01
"""Resident memory is asked for wherever arrays hold so much more than at any time before."""
SHORTEST_PAUSE_NS = 20_000_000
BEGIN_SHARE = 0.02
"""Of the most bytes that arrays held: growth counts from the sample before they reach it."""
HOLES = (
    (64, 0.02), (256, 0.04), (10_000, 0.06), (20_000, 0.12), (40_000, 0.07), (90_000, 0.14),
    (110_000, 0.10), (210_000, 0.20), (350_000, 0.25),
)  # fmt: skip
"""Sizes of free chunks of a Python's heap that has imported NumPy, and their parts of its free
bytes, as glibc lists them (``malloc_info``)."""
EARLY_HOLES = ((300, 0.12), (30_000, 0.37), (95_000, 0.51))
"""The same where the recorder has just begun, before the program imports anything."""
FREE_AT_START = 3_200_000
"""What such a heap has free, where no sample says it."""
MOST_FREE_AT_START = 64_000_000
LARGEST_READ = 161_000
"""The largest file that such a start reads: glibc serves what is smaller from its heap later."""
PIECE = 120_000
"""Larger holes are made of several blocks side by side, as glibc maps each large block."""
KEEPER = 48
"""Bytes of what stays between two holes."""
SAMPLE_NS = 5_000_000
"""How long reading one sample may take, while the program goes on."""
WRITTEN_NS = 20_000_000
"""In this time a program has written what it allocated, where no counter says otherwise."""
UNTOUCHED_SHARE = 0.01
"""Of the most bytes that arrays held: so few pages that were never written do not matter."""
FEW_MAPPED_SHARE = 0.02
"""Of the most bytes that blocks held: so few that malloc mapped singly, or that came and went
around a sample, do not matter."""
LEAST_COMPARED_BYTES = 8_000_000
"""A run whose arrays never held so much says nothing: other memory of the process moves as far."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sampled:
    """Resident memory of the recorded run. ``point`` is the place of each sample in the points,
    ``before`` that of the moment ``SAMPLE_NS`` earlier, as a sample takes that long.

    ``grown_bytes`` is what the process grew by since the first of them, when arrays began, less
    what Python's small objects and the recorder grew by, plus pages of arrays that were never
    written (the player writes all). Samples next to which these pages were not counted are left
    out where there were any.
    """

    time_ns: Ints
    point: Ints
    before: Ints
    grown_bytes: Ints


@dataclass(frozen=True)
class HostTrace:
    """Events of ``EVENT_DTYPE`` in order.

    ``point_ns`` is the time of each event of kind ``POINT``, ``point_live`` what blocks held then,
    ``point_end`` the one at the program's end. ``pauses_ns`` is the sum of pauses of
    ``SHORTEST_PAUSE_NS`` or more, as recorded; ``kept_ns`` of those in the trace.
    ``free_at_start`` are the free bytes of the heap that it begins with. ``heap_blocks`` is how
    many of the blocks are not arrays, but of ``record --heap``; with ``every_block`` none is
    missing.
    """

    events: np.ndarray
    blocks: int
    older: int
    resizes: int
    threads: int
    live_peak: int
    point_ns: Ints
    point_live: Ints
    point_end: int
    pauses_ns: int
    kept_ns: int
    free_at_start: int
    heap_blocks: int
    every_block: bool
    sampled: Sampled | None
    no_comparison: str
    problems: tuple[str, ...]

    @property
    def changes(self) -> int:
        """How many allocations, resizes and frees there are; a resize is one."""
        kind = self.events["kind"]
        return int(((kind == ALLOC) | (kind == FREE)).sum())

    def stream_for(self, knows_time: bool) -> bytes:
        """What the player reads; pauses are only for an allocator to which time matters."""
        events = self.events if knows_time else self.events[self.events["kind"] != PAUSE]
        start = start_of(self.blocks, self.free_at_start, early=self.heap_blocks > 0)
        blocks = max(self.blocks, int(start["block"].max()) + 1)
        head = MAGIC + struct.pack("<QQ", blocks, len(start) + len(events))
        return head + start.tobytes() + events.tobytes()


def host_trace(recording: Recording, pauses_s: float = 0.0) -> HostTrace:
    """The trace of a recording's arrays and PyTorch's blocks in ordinary memory.

    Args:
        pauses_s: pauses of the program are kept, shortened together to this many seconds.
    Raises:
        CannotReplay: there is none, or more than the player takes.
    """
    blocks = blocks_of(recording)
    if HOST not in blocks.memories:
        there = ", ".join(blocks.memories) or "none"
        raise CannotReplay(
            f"{recording.path} has no allocation in the host's memory (memories with some: "
            f"{there}); host allocators need a recording of NumPy arrays or PyTorch's CPU tensors."
        )
    chosen = np.flatnonzero(blocks.memory == blocks.memories.index(HOST))
    chosen = chosen[np.lexsort((blocks.number[chosen], blocks.born[chosen]))]
    size = blocks.size[chosen]
    if int(size.max()) > LARGEST_BLOCK:
        raise CannotReplay(
            f"{recording.path} has a block of {format_bytes(int(size.max()))}; no machine has that "
            "much, so the recording is damaged."
        )
    if len(chosen) > MOST_BLOCKS:
        raise CannotReplay(
            f"{recording.path} has {format_count(len(chosen))} blocks; the player takes "
            f"{format_count(MOST_BLOCKS)}: record a shorter run."
        )
    return _Builder(recording, blocks, chosen).trace(pauses_s)


class _Builder:
    """Makes one trace."""

    def __init__(self, recording: Recording, blocks: Blocks, chosen: Ints) -> None:
        self.recording, self.arrays = recording, len(chosen)
        self.heap = heap = heap_blocks(recording, blocks.time_ns)
        self.time_ns = heap.time_ns
        self.number = np.append(blocks.number[chosen], np.full(len(heap), -1))
        self.size = np.append(blocks.size[chosen], heap.size)
        self.born = np.append(_shifted(blocks.born[chosen], heap.shift), heap.born)
        self.died = np.append(_shifted(blocks.died[chosen], heap.shift), heap.died)
        self.born_thread, self.died_thread = self._threads(
            np.append(blocks.born_thread[chosen], heap.born_thread),
            np.append(blocks.died_thread[chosen], heap.died_thread),
        )
        device = blocks.device[chosen]
        self.flags = np.zeros(len(self.size), np.int64)
        # Where every block of the heap is known, those of the shapes are among them.
        self.flags[: len(chosen)][device == Device.NUMPY] = ADVISED if heap.every else NUMPY
        self.flags[: len(chosen)][np.isin(device, (Device.TORCH, Device.CPU))] = ALIGNED
        self.old = self._resized()
        self.problems: list[str] = []
        if blocks.thinned:
            self.problems.append(
                "A size limit thinned the list of what was alive: each block before "
                f"{format_seconds(recording.horizon_ns / 1e9)} stands for several."
            )

    def _threads(self, born: Ints, died: Ints) -> tuple[Ints, Ints]:
        """Numbers from 0, the program's first thread, on."""
        table = self.recording.threads
        mains = table.index[table["main"]].to_list() if len(table) else []
        every = pd.unique(np.concatenate([np.array(mains[:1], np.int64), born, died]))
        every = np.array([each for each in every if each >= 0], np.int64)
        if len(every) > MOST_THREADS:
            raise CannotReplay(
                f"{self.recording.path} has {format_count(len(every))} threads that allocate; the "
                f"player takes {format_count(MOST_THREADS)}: record a shorter run."
            )
        self.thread_count = len(np.unique(np.concatenate([born, died[died >= 0]])))
        place = pd.Series(np.arange(len(every)), index=every)
        return (
            place.reindex(born).fillna(0).to_numpy(np.int64),
            place.reindex(died).fillna(0).to_numpy(np.int64),
        )

    def _resized(self) -> Ints:
        """The place of the block that each one was before it was resized; -1: it is new."""
        objects = self.recording.objects
        of = objects["resized_from"].reindex(self.number).fillna(-1).to_numpy(np.int64)
        order = np.argsort(self.number)
        place = np.searchsorted(self.number[order], of).clip(max=len(order) - 1)
        place = order[place]
        known = (
            (of >= 0) & (self.number >= 0) & (self.number[place] == of) & (self.died[place] < NEVER)
        )
        known &= self.born >= 0
        found = np.where(known, place, -1)
        found[self.arrays :] = np.where(self.heap.resized >= 0, self.heap.resized + self.arrays, -1)
        return found

    def trace(self, pauses_s: float) -> HostTrace:
        """The whole trace."""
        rows = np.arange(len(self.number))
        renewed = np.flatnonzero(self.old >= 0)
        gone = np.ones(len(rows), bool)
        gone[self.old[renewed]] = False
        freed = np.flatnonzero((self.died < NEVER) & gone)
        ended = np.where(self.died < NEVER, self.died, -1)
        changes = np.unique(np.concatenate([self.born, ended[ended >= 0]]))
        begin = int(self.born[: self.arrays].min())
        points, end, samples = self._points(changes[changes >= begin])
        pauses, lengths = self._pauses(changes)
        scale = min(1.0, pauses_s * 1e9 / max(1, int(lengths.sum())))
        kept = np.round(lengths * scale).astype(np.int64) if pauses_s > 0 else lengths[:0]
        last = self._last_of_threads()
        # At one position: what ends, what is resized, what begins, the question, the thread's end.
        parts = [
            _part(FREE, self.died[freed], 0, block=freed, lane=self.died_thread[freed]),
            _part(
                RESIZE,
                self.born[renewed],
                1,
                block=self.old[renewed],
                lane=self.born_thread[renewed],
            ),
            _part(
                ALLOC,
                self.born,
                2,
                block=rows,
                lane=self.born_thread,
                bytes=self.size,
                flags=self.flags,
            ),
            _part(POINT, points, 3),
            _part(END, last[1:], 4, lane=np.arange(1, len(last))),
            _part(PAUSE, pauses[: len(kept)], 5, bytes=kept),
            _part(BEGIN, np.full(min(len(self.heap), 1), begin), -1),
        ]
        events = np.concatenate([each[0] for each in parts])
        order = np.lexsort(
            (
                np.concatenate([each[2] for each in parts]),
                np.concatenate([each[1] for each in parts]),
            )
        )
        curve = Curve.of(self.size, self.born, self.died)
        before = int(_level_at(curve, np.array([begin - 1]))[0])
        arrays = self._arrays()
        sampled, why = self._sampled(samples, arrays)
        return HostTrace(
            events=events[order],
            blocks=len(rows),
            older=int((self.born < 0).sum()),
            resizes=len(renewed),
            threads=self.thread_count,
            live_peak=int(curve.level[curve.at >= begin].max()) - before,
            point_ns=self._times(points),
            point_live=_level_at(curve, points) - before,
            point_end=end,
            pauses_ns=int(lengths.sum()),
            kept_ns=int(kept.sum()),
            free_at_start=self._free_at_start(arrays),
            heap_blocks=len(self.heap),
            every_block=self.heap.every,
            sampled=sampled,
            no_comparison=why,
            problems=tuple(self.problems),
        )

    def _arrays(self) -> Curve:
        mine = slice(0, self.arrays)
        return Curve.of(self.size[mine], self.born[mine], self.died[mine])

    def _times(self, at: Ints) -> Ints:
        known = self.time_ns
        if not len(known):
            return np.zeros(len(at), np.int64)
        return np.where(at >= 0, known[np.clip(at, 0, len(known) - 1)], 0)

    def _last_of_threads(self) -> Ints:
        """The position of the last event of each thread that is replayed."""
        last = np.full(int(max(self.born_thread.max(), self.died_thread.max())) + 1, -1, np.int64)
        np.maximum.at(last, self.born_thread, self.born)
        known = self.died < NEVER
        np.maximum.at(last, self.died_thread[known], self.died[known])
        return last

    def _points(self, changes: Ints) -> tuple[Ints, int, tuple[pd.DataFrame, Ints]]:
        """Where resident memory is asked for, the one at the end, and which are of samples."""
        curve = Curve.of(self.size, self.born, self.died)
        even = changes[np.linspace(0, len(changes) - 1, MOST_POINTS // 2).astype(int)]
        highest = np.maximum.accumulate(curve.level)
        grade = np.floor(np.log(np.maximum(highest, 1)) / np.log(RISE))
        rises = curve.at[np.flatnonzero(np.diff(grade, prepend=-1.0) > 0)]
        end_ns = self.recording.end_ns
        time_ns = self.time_ns
        end = int(changes[-1])
        if end_ns is not None and len(time_ns):
            end = min(end, int(np.searchsorted(time_ns, end_ns, side="right")) - 1)
        samples = self.recording.samples
        if len(samples):
            # What was asked at other moments than resident memory lies between its neighbours.
            peak, still = int(curve.level.max()), self._still(samples, curve)
            samples = samples.assign(elsewhere=_elsewhere(samples, peak, still))
            samples = samples[samples["anon"].notna()]
        times = samples["time_ns"].to_numpy(np.int64) if len(samples) else np.zeros(0, np.int64)
        inside = times <= (end_ns if end_ns is not None else np.iinfo(np.int64).max)
        samples, times = samples[inside], times[inside]
        if len(times) > MOST_SAMPLES:
            taken = np.linspace(0, len(times) - 1, MOST_SAMPLES).astype(int)
            samples, times = samples.iloc[taken], times[taken]
        at = np.searchsorted(time_ns, times, side="right") - 1
        before = np.searchsorted(time_ns, times - SAMPLE_NS, side="right") - 1
        points = np.unique(np.concatenate([even, rises, [end], at, before]))
        place = np.searchsorted(points, np.stack([at, before]))
        return points, int(np.searchsorted(points, end)), (samples, place)

    def _still(self, samples: pd.DataFrame, curve: Curve) -> NDArray[np.bool_]:
        """At which samples of mappings blocks were written and hardly changed meanwhile."""
        written = samples["untouched"] <= UNTOUCHED_SHARE * curve.level.max()
        asked = (samples["mapped"].notna() & written).to_numpy()
        when = samples["time_ns"].to_numpy(np.int64)
        at_ns, most = self._times(curve.at), FEW_MAPPED_SHARE * curve.level.max()
        begin = np.searchsorted(at_ns, when - WRITTEN_NS, side="right") - 1
        end = np.searchsorted(at_ns, when + SAMPLE_NS, side="right")
        return np.array(
            [
                bool(one) and b > 0 and np.ptp(curve.level[max(a, 0) : b]) <= most
                for one, a, b in zip(asked, begin, end, strict=True)
            ],
            bool,
        )

    def _pauses(self, changes: Ints) -> tuple[Ints, Ints]:
        """After which event the program paused, and for how long."""
        gaps = np.diff(self._times(changes))
        long = np.flatnonzero((gaps >= SHORTEST_PAUSE_NS) & (changes[:-1] >= 0))
        return changes[long], gaps[long]

    def _begin_ns(self, curve: Curve) -> int:
        """When arrays begin to count."""
        begin = curve.at[int(np.argmax(curve.level >= BEGIN_SHARE * curve.highest[0]))]
        return int(self._times(np.array([begin]))[0])

    def _free_at_start(self, curve: Curve) -> int:
        """What the C allocator had free when arrays began."""
        samples = self.recording.samples
        if len(samples):
            before = samples["malloc_free"].dropna()
            if len(self.heap):  # from the recorder's first look on all is replayed
                before = before[:1]
            else:
                before = before[samples["time_ns"] <= self._begin_ns(curve)]
            if len(before):
                return min(int(before.iloc[-1]), MOST_FREE_AT_START)
        return FREE_AT_START

    def _sampled(
        self, samples: tuple[pd.DataFrame, Ints], curve: Curve
    ) -> tuple[Sampled | None, str]:
        """What the recorded run had, from the moment at which arrays begin; or why not."""
        table, (point, before) = samples
        peak = curve.highest[0]
        if not len(table):
            return None, "the recording has no samples of resident memory"
        if peak < LEAST_COMPARED_BYTES:
            return None, (
                f"arrays never held more than {format_bytes(peak)} at once, and other memory of "
                "a process moves as far"
            )
        if self.recording.fold is not None:
            return None, "of the beginning of the run only sums are known"
        begin_ns = self._begin_ns(curve)
        time_ns = table["time_ns"].to_numpy(np.int64)
        first = int(np.searchsorted(time_ns, begin_ns)) - 1
        if first < 0 or len(time_ns) - first < 3:
            return (
                None,
                "too few samples of resident memory lie between the first array and the end",
            )
        untouched = table["untouched"].ffill().fillna(0.0)
        grown = table["anon"] + untouched - table["elsewhere"]
        values = grown.to_numpy(np.float64)
        values = (values - values[first]).astype(np.int64)
        none = table["untouched"].isna().to_numpy()
        around = np.maximum(
            untouched.to_numpy(np.float64),
            table["untouched"].bfill().fillna(0.0).to_numpy(np.float64),
        )
        kept = ~none | (around <= UNTOUCHED_SHARE * peak)
        kept &= np.arange(len(kept)) >= first
        kept[first] = True  # all others are compared with it
        return Sampled(time_ns[kept], point[kept], before[kept], values[kept]), ""


def _elsewhere(samples: pd.DataFrame, peak: int, still: NDArray[np.bool_]) -> Floats:
    """Resident memory at each sample that is not malloc's: Python's arenas, the recorder's, what
    libraries map and have as data, stacks. What the recorder maps is known whenever it changes, and
    what of it is resident seldom. The last three are the mappings less all that is known in them,
    where malloc mapped few blocks itself or its blocks were ``still``: both are not asked at one
    moment.
    """
    when = samples["time_ns"].to_numpy(np.float64)

    def between(values: pd.Series, known: pd.Series) -> Floats:
        at = known.to_numpy() & values.notna().to_numpy()
        if not at.any():
            return np.zeros(len(when))
        return np.interp(when, when[at], values.to_numpy(np.float64)[at])

    always = samples["time_ns"].notna()
    arenas, recorder = samples["python_arena"], samples["recorder_resident"]
    singly = samples["malloc_mapped"]
    rest = samples["mapped"] + samples["library_data"] + samples["stacks"]
    rest = rest - singly - arenas - recorder
    few = (singly <= singly.min() + FEW_MAPPED_SHARE * peak) | still
    mapped = samples["recorder"].ffill().fillna(0.0).to_numpy(np.float64)
    known = recorder.notna().to_numpy()
    own = _along(recorder.to_numpy(np.float64), mapped, when, known)
    return between(arenas, always) + own + between(rest, few)


def _along(values: Floats, other: Floats, when: Floats, known: NDArray[np.bool_]) -> Floats:
    """``values`` between those that are known, as far as ``other`` has come from the one to the
    next; by time where that is the same at both.
    """
    at = np.flatnonzero(known)
    if not len(at):
        return np.zeros(len(when))
    row = np.arange(len(when))
    right = np.searchsorted(at, row).clip(max=len(at) - 1)
    left = np.where(at[right] > row, right - 1, right).clip(min=0)
    first, last = at[left], at[right]
    length, passed = when[last] - when[first], when - when[first]
    rise = other[last] - other[first]
    share = np.where(length > 0, passed / np.where(length > 0, length, 1), 0.0)
    share = np.where(rise != 0, (other - other[first]) / np.where(rise != 0, rise, 1), share)
    values = np.where(known, values, 0.0)
    return values[first] + (values[last] - values[first]) * share.clip(0, 1)


def _shifted(at: Ints, shift: Ints) -> Ints:
    """Places of events in a clock that has others between; none before the first one."""
    inside = (at >= 0) & (at < NEVER)
    return np.where(inside, shift[np.where(inside, at, 0)], at) if len(shift) else at


def start_of(first: int, free_bytes: int, early: bool = False) -> np.ndarray:
    """Events that leave a heap as a Python's is before its first array: with holes of many sizes.

    Args:
        first: the first number for the blocks of it.
        free_bytes: how much of the heap is free; the holes are the same for the same number.
        early: as it is before the program imports anything.
    """
    shares = EARLY_HOLES if early else HOLES
    sizes = [np.full(round(free_bytes * share / size), size) for size, share in shares]
    holes = np.random.default_rng(1).permutation(np.concatenate(sizes))
    pieces = -(-holes // PIECE)
    keepers = np.cumsum(pieces)
    made = np.insert(np.repeat(holes // pieces, pieces), keepers, KEEPER)
    gone = np.insert(np.ones(int(pieces.sum()), bool), keepers, False)
    made, gone = np.append(LARGEST_READ, made), np.append(False, gone)
    block = first + np.arange(len(made))
    read = slice(0, 0 if early else 1)
    parts = (
        _part(ALLOC, block[read], 0, block=block[read], bytes=made[read]),
        _part(FREE, block[read], 0, block=block[read]),
        _part(ALLOC, block[1:], 0, block=block[1:], bytes=made[1:]),
        _part(FREE, block[gone], 0, block=block[gone]),
        _part(BEGIN, block[:1], 0),
    )
    return np.concatenate([each[0] for each in parts])


def _part(kind: int, at: Ints, rank: int, **fields: Ints) -> tuple[np.ndarray, Ints, Ints]:
    """Events of one kind, where each belongs, and which of one place comes first."""
    made = np.zeros(len(at), EVENT_DTYPE)
    made["kind"] = kind
    for name, values in fields.items():
        made[name] = values
    return made, np.asarray(at, np.int64), np.full(len(at), rank, np.int64)


def _level_at(curve: Curve, at: Ints) -> Ints:
    """The bytes of a curve just after some positions."""
    place = np.searchsorted(curve.at, at, side="right") - 1
    return np.where(place >= 0, curve.level[np.maximum(place, 0)], 0.0).astype(np.int64)
