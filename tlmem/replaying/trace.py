"""The allocations and frees of one memory as a replay takes them, and what its allocator did.

Covers: blocks, lanes (streams and private pools) and events of any recording; of an imported
snapshot also the segments and blocks that were there before, the requests that the driver refused,
and reserved memory over time. Does not cover: replaying them (``cuda``).

An array of a program that used no accelerator is replayed as if it lay on one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER, is_imported
from tlmem.analysis.peak.blocks import ACCELERATOR_BITS, Blocks, blocks_of
from tlmem.errors import TlmemError
from tlmem.events import Device, Kind
from tlmem.replaying.settings import Settings, recorded_settings
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    import pandas as pd

    from tlmem.recording.reader import Recording

EVENT_DTYPE = np.dtype(
    [("bytes", "<u8"), ("block", "<u4"), ("lane", "<u2"), ("kind", "u1"), ("flags", "u1")]
)
ALLOC, FREE, EMPTY, COLLECT, WAIT, IDLE = 1, 2, 3, 4, 5, 6
"""Kinds of events, as in ``native/include/tlmem_replay.h``."""
REFUSED_ONCE, REFUSED_TWICE, NOT_FOUND = 1, 2, 4
MOST_LANES = 1 << 16
LARGEST_BLOCK = 1 << 46
MOST_ERROR = 0.05
"""Of the recorded peak: a replay that is further away says nothing of other settings."""
AT_ITS_FREE, NEVER_REUSED = -2, -1
NO_STREAM = -1
ADDRESS = (1 << ACCELERATOR_BITS) - 1
MIB = 1 << 20
JUST_BEFORE = 0.25

Ints = NDArray[np.int64]


class CannotReplay(TlmemError):
    """The recording has nothing that can be replayed, or not in the memory that was asked for."""

    exit_code = 3


class NoSuchMemory(TlmemError):
    """The recording has no allocation in the memory that was asked for."""

    exit_code = 2


@dataclass(frozen=True)
class StartSegment:
    """A segment that is older than the trace."""

    address: int
    bytes: int
    lane: int
    small: bool
    expandable: bool


@dataclass(frozen=True)
class StartBlock:
    """A block that is older than the trace."""

    block: int
    address: int
    bytes: int
    requested: int


@dataclass(frozen=True)
class Recorded:
    """What the recorded allocator did.

    ``events`` are those after the start, ``reserved`` what was reserved after each one of them (-1
    where that is not compared: only after allocations), ``places`` are addresses and sizes of the
    segments that the driver gave, in order. ``address`` is where each block lay. ``changes`` are
    what the driver gave (1) and got back (0) after the start: the number of the allocation in
    ``events`` that comes next, 1 or 0, address and bytes.
    """

    settings: Settings
    segments: list[StartSegment]
    blocks: list[StartBlock]
    events: np.ndarray
    time_ns: Ints
    reserved: Ints
    places: Ints
    address: Ints
    changes: Ints
    retries: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """Allocations and frees of one memory, in order.

    ``events`` are of ``EVENT_DTYPE``; those of the first ``older`` blocks stand first: their order
    is not known. ``time_ns`` is that of each event. ``number`` is the object of each block,
    ``site`` where it was allocated. ``lanes`` are stream and pool of each lane, ``pools`` which of
    them are not the default pool, ``plain`` which have no expandable segments though the settings
    ask for these: their pool has an allocator of its own. ``others`` are the peaks of other
    memories in bytes.
    """

    memory: str
    events: np.ndarray
    time_ns: Ints
    number: Ints
    site: NDArray[np.int64]
    size: Ints
    older: int
    lanes: tuple[tuple[int, int, int], ...]
    pools: NDArray[np.uint32]
    plain: NDArray[np.bool_]
    imported: bool
    recorded: Recorded | None
    others: dict[str, int] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.number)

    @property
    def changes(self) -> int:
        """How many allocations and frees there are."""
        return int(np.isin(self.events["kind"], (ALLOC, FREE)).sum())

    @property
    def peak_requested(self) -> int:
        """The most bytes that were asked for at once: no allocator reserves less."""
        sizes = np.where(self.events["kind"] == ALLOC, self.size[self.events["block"]], 0)
        freed = np.where(self.events["kind"] == FREE, self.size[self.events["block"]], 0)
        return int(np.cumsum(sizes - freed).max(initial=0))


def trace_of(recording: Recording, memory: str | None = None) -> Trace:
    """The trace of one memory; of the one with the highest peak when none is named.

    Raises:
        NoSuchMemory: nothing was allocated in that memory.
        CannotReplay: nothing was allocated at all, or not over time.
    """
    blocks = blocks_of(recording)
    names = [blocks.memories[number] for number in blocks.by_peak]
    if memory is not None and memory not in names:
        there = ", ".join(names) or "none"
        raise NoSuchMemory(
            f"{recording.path} has no allocation in memory '{memory}'; memories with some: {there}."
        )
    if not names:
        raise CannotReplay(
            f"{recording.path} has no allocation with bytes of its own, so there is nothing to "
            "replay; record a program that makes arrays or tensors."
        )
    memory = memory or names[0]
    number = blocks.memories.index(memory)
    others = {
        blocks.memories[each]: blocks.peaks[each][0] for each in blocks.by_peak if each != number
    }
    return _Builder(recording, blocks, number, memory).trace(others)


@dataclass(frozen=True)
class _Run:
    """Segments that went back side by side, and what made the allocator do so.

    ``rows`` are their positions, ``kind`` is ``EMPTY``, ``COLLECT`` or 0 for a request that the
    driver refused; ``block`` is the block whose request it was, ``least`` the smallest of the
    segments. ``idle`` are lanes of private pools that some of them belonged to.
    """

    rows: tuple[int, ...]
    kind: int
    block: int
    bytes: int
    least: int
    idle: tuple[int, ...]

    @property
    def at(self) -> float:
        """Where it begins."""
        return float(self.rows[0])


class _Builder:
    """Makes one trace."""

    def __init__(self, recording: Recording, blocks: Blocks, memory: int, name: str) -> None:
        self.recording, self.name = recording, name
        self.imported = is_imported(recording)
        chosen = np.flatnonzero(blocks.memory == memory)
        chosen = chosen[np.lexsort((blocks.number[chosen], blocks.born[chosen]))]
        self.number = blocks.number[chosen]
        self.born, self.died = blocks.born[chosen], blocks.died[chosen]
        self.born_ns = blocks.born_ns[chosen]
        self.site = blocks.born_site[chosen]
        self.block_bytes = blocks.size[chosen]
        objects = recording.objects
        place = np.searchsorted(objects.index.to_numpy(np.int64), self.number)
        self.address = (objects["address"].to_numpy(np.uint64)[place] & np.uint64(ADDRESS)).astype(
            np.int64
        )
        self.size = self.block_bytes.copy()
        self.lane = np.zeros(len(chosen), np.int64)
        self.lanes: tuple[tuple[int, int, int], ...] = ((0, 0, 0),)
        self.is_old = (self.born < 0) | ((self.born_ns == 0) if self.imported else False)
        if int(self.size.max(initial=0)) > LARGEST_BLOCK:
            raise CannotReplay(
                f"{recording.path} has a block of {format_bytes(int(self.size.max()))}; no device "
                "has that much, so the recording is damaged."
            )
        self.events_time = blocks.time_ns
        self.last = len(blocks.time_ns)
        self.free_at = np.where(self.died == NEVER, -1, self.died).astype(np.float64)
        self._requests()
        # What is older comes first; its order is not known, that of addresses is as good as any.
        order = np.lexsort(
            (self.number, np.where(self.is_old, self.address, self.born), ~self.is_old)
        )
        for each in ("number", "born", "died", "born_ns", "site", "block_bytes", "address", "size",
                     "lane", "is_old", "free_at"):  # fmt: skip
            setattr(self, each, getattr(self, each)[order])
        self.older = int(self.is_old.sum())
        if self.older == len(self.number):
            raise CannotReplay(
                f"{recording.path} has {format_count(self.older)} blocks of {name} at one moment "
                "and no allocation over time, so there is nothing to replay; take the snapshot "
                "with torch.cuda.memory._record_memory_history() on."
            )

    def _requests(self) -> None:
        """What an imported snapshot knows beside sizes of blocks."""
        requests = self.recording.requests
        if not len(requests) or int(self.number.max()) >= len(requests):
            return
        mine = requests.iloc[self.number]
        asked = mine["requested_bytes"].to_numpy(np.int64)
        self.size = np.maximum(np.minimum(asked, self.block_bytes), 1)
        uses = mine[["stream", "pool_owner", "pool_number"]].to_numpy(np.int64)
        lanes, lane = np.unique(uses, axis=0, return_inverse=True)
        if len(lanes) <= MOST_LANES:
            self.lanes = tuple((int(a), int(b), int(c)) for a, b, c in lanes)
            self.lane = lane.reshape(-1).astype(np.int64)
        reusable = mine["reusable"].to_numpy(np.int64)
        new = np.sort(self.born[~self.is_old])
        later = np.append(new - 0.5, self.last)
        waits = reusable >= 0
        self.free_at[waits] = later[np.minimum(reusable[waits], len(new))]
        # Given back before the next allocation: that is at the free itself.
        at_once = waits & (self.died < NEVER)
        at_once[at_once] = np.searchsorted(new, self.died[at_once]) == reusable[at_once]
        self.free_at[at_once] = self.died[at_once]
        self.free_at[reusable == NEVER_REUSED] = -1

    # ---- events ----

    def trace(self, others: dict[str, int]) -> Trace:
        """The whole trace."""
        frame = self.recording.events
        device = self._device_rows(frame)
        runs = self._runs(frame, device) if len(device) else []
        for run in runs:
            if run.kind != EMPTY:
                # What other streams were done with by the request was free before it gave back.
                late = (self.free_at > run.at) & (self.free_at < self.born[run.block])
                self.free_at[late & (self.died < run.at)] = run.at - 2 * JUST_BEFORE
        extra, at = _given_back([run for run in runs if run.kind == EMPTY], runs)
        events, time_ns = self._events(np.arange(len(self.number)), extra, at)
        recorded = self._recorded(frame, device, runs) if len(device) else None
        pools = self._pools()
        return Trace(
            memory=self.name,
            events=events,
            time_ns=time_ns,
            number=self.number,
            site=self.site,
            size=self.size,
            older=self.older,
            lanes=self.lanes,
            pools=pools,
            plain=self._plain(pools),
            imported=self.imported,
            recorded=recorded,
            others=others,
        )

    def _events(
        self,
        rows: Ints,
        extra: np.ndarray,
        extra_at: NDArray[np.float64],
        flags: dict[int, int] | None = None,
    ) -> tuple[np.ndarray, Ints]:
        """Allocations and frees of some blocks and other events, in order, with their times."""
        freed = rows[self.free_at[rows] >= 0]
        late = (self.free_at[rows] < 0) | (self.free_at[rows] > self.died[rows])
        waits = rows[late & (self.died[rows] < NEVER)]
        made = np.zeros(len(rows) + len(freed) + len(waits), EVENT_DTYPE)
        begin = slice(0, len(rows))
        end = slice(len(rows), len(rows) + len(freed))
        given_up = slice(end.stop, len(made))
        made["kind"][begin], made["kind"][end], made["kind"][given_up] = ALLOC, FREE, WAIT
        made["block"][begin], made["block"][end], made["block"][given_up] = rows, freed, waits
        made["bytes"][begin] = self.size[rows]
        made["lane"][begin] = self.lane[rows]
        for block, flag in (flags or {}).items():
            made["flags"][begin][rows == block] = flag
        born = np.where(self.is_old, -1.0, self.born)
        at = np.concatenate([born[rows], self.free_at[freed], self.died[waits], extra_at])
        made = np.concatenate([made, extra])
        # What ends with an event ends before something begins with it.
        order = np.lexsort((made["kind"] == ALLOC, at))
        position = np.clip(np.ceil(at[order]), 0, max(self.last - 1, 0)).astype(np.int64)
        times = self.events_time[position] if self.last else np.zeros(len(order), np.int64)
        times[at[order] < 0] = 0
        return made[order], times

    def _pools(self) -> NDArray[np.uint32]:
        """The number of each lane's pool: 0 is the default one."""
        pools: dict[tuple[int, int], int] = {(0, 0): 0}
        return np.array([pools.setdefault(lane[1:], len(pools)) for lane in self.lanes], np.uint32)

    def lane_of(self, use: tuple[int, int, int]) -> int:
        """The lane of a stream and a pool; a new one where none of the blocks is of it."""
        if use not in self.lanes and len(self.lanes) < MOST_LANES:
            self.lanes = (*self.lanes, use)
        return self.lanes.index(use) if use in self.lanes else 0

    def _plain(self, pools: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which lanes are of a private pool that has segments, and no expandable one."""
        table = self.recording.segments
        mine = table[table["accelerator"] == self._accelerator()] if self.imported else table[:0]
        uses = mine[["pool_owner", "pool_number", "expandable"]].to_numpy(np.int64).tolist()
        grown = {(owner, number) for owner, number, expandable in uses if expandable}
        fixed = {(owner, number) for owner, number, expandable in uses if not expandable} - grown
        private = [lane[1:] in fixed for lane in self.lanes]
        return np.array(private, bool) & (pools > 0) & bool(grown)

    # ---- what the allocator did ----

    def _device_rows(self, frame: pd.DataFrame) -> Ints:
        """Where in the table of events this accelerator's driver gave or took; none of others."""
        if not self.imported:
            return np.zeros(0, np.int64)
        kind = frame["kind"].to_numpy(np.uint8)
        mine = (kind == Kind.DEVICE_ALLOC) | (kind == Kind.DEVICE_FREE)
        mine &= frame["device"].to_numpy(np.uint8) == Device.TORCH_ACCELERATOR
        rows = np.flatnonzero(mine)
        address = frame["address"].to_numpy(np.uint64)[rows]
        number = (address >> np.uint64(ACCELERATOR_BITS)).astype(np.int64)
        return rows[number == self._accelerator()]

    def _accelerator(self) -> int:
        return int(self.name.rpartition(":")[2])

    def _runs(self, frame: pd.DataFrame, device: Ints) -> list[_Run]:
        """Consecutive releases of segments, as runs."""
        kind = frame["kind"].to_numpy(np.uint8)[device]
        site = frame["site"].to_numpy(np.int64)[device]
        size = frame["arg"].to_numpy(np.uint64)[device].astype(np.int64)
        address = frame["address"].to_numpy(np.uint64)[device] & np.uint64(ADDRESS)
        born = np.where(self.is_old, -1, self.born)
        between = np.searchsorted(np.sort(born), device)
        settings, _ = recorded_settings(self.recording.info)
        found = []
        freed = np.flatnonzero(kind == Kind.DEVICE_FREE)
        apart = np.flatnonzero((np.diff(freed) != 1) | (np.diff(between[freed]) != 0)) + 1
        for run in np.split(freed, apart) if len(freed) else []:
            at = int(np.searchsorted(born, device[run[-1]]))  # blocks are in order of birth
            block = at if at < len(born) else -1
            sites = set(site[run].tolist())
            is_request = block >= 0 and sites == {int(self.site[block])} and 0 not in sites
            idle = self._private(address[run].astype(np.int64), size[run], at)
            if is_request:  # its own pool is in use
                own = self.lanes[int(self.lane[block])][1:]
                idle = tuple(lane for lane in idle if self.lanes[lane][1:] != own)
            total, least = int(size[run].sum()), int(size[run].min())
            # Only large segments of the default pool are collected, and no pages.
            collects = settings.garbage_collection_threshold and not settings.expandable_segments
            collects = collects and least > 2 * MIB and not idle
            what = (COLLECT if collects else 0) if is_request else EMPTY
            found.append(_Run(tuple(device[run].tolist()), what, block, total, least, idle))
        return found

    def _private(self, address: Ints, size: Ints, before: int) -> tuple[int, ...]:
        """A lane of each private pool that segments were of: that of the last block in each.

        Args:
            before: how many blocks were there when they went.
        """
        found: dict[tuple[int, int], int] = {}
        if any(lane[1:] != (0, 0) for lane in self.lanes):
            there = self.address[:before]
            for at, length in zip(address.tolist(), size.tolist(), strict=True):
                inside = np.flatnonzero((there >= at) & (there < at + length))
                lane = int(self.lane[inside[-1]]) if len(inside) else 0
                found.setdefault(self.lanes[lane][1:], lane)
        found.pop((0, 0), None)
        return tuple(found.values())

    def _recorded(self, frame: pd.DataFrame, device: Ints, runs: list[_Run]) -> Recorded:
        settings, problems = recorded_settings(self.recording.info)
        kind = frame["kind"].to_numpy(np.uint8)[device]
        address = (frame["address"].to_numpy(np.uint64)[device] & np.uint64(ADDRESS)).astype(
            np.int64
        )
        size = frame["arg"].to_numpy(np.uint64)[device].astype(np.int64)
        is_start = frame["time_ns"].to_numpy(np.int64)[device] == 0
        split = settings.max_split_size_mb * MIB
        once = [run for run in runs if run.kind == 0 and split and run.least >= split]
        start = _Start(self, settings, kind, address, size, device, is_start)
        # Segments of this size go back for a request of their own lane.
        start.lanes = {row: int(self.lane[run.block]) for run in once for row in run.rows}
        segments = start.segments()
        runs = [replace(run, idle=(*run.idle, *start.unused_of(run))) for run in runs]
        placed, left = self._placed(segments)
        if left:
            problems.append(
                f"{format_count(len(left))} blocks that are older than the trace lie in no segment "
                "that was there then, and are left out of the comparison"
            )
        rows = np.setdiff1d(np.arange(len(self.number)), left)
        rows = rows[~self.is_old[rows]]
        old = np.array([each.block for each in placed], np.int64)
        flags = {run.block: REFUSED_TWICE for run in runs if run.kind == 0}
        flags |= {run.block: REFUSED_ONCE for run in once}
        flags |= {run.block: NOT_FOUND for run in runs if run.kind == COLLECT}
        extra, at = _given_back([run for run in runs if run.kind], runs)
        events, times = self._recorded_events(rows, old, extra, at, flags)
        given = np.where(kind == Kind.DEVICE_ALLOC, size, -size)
        level = np.cumsum(given)
        allocated = np.flatnonzero(events["kind"] == ALLOC)
        reserved = np.full(len(events), -1, np.int64)
        before = np.searchsorted(device, self.born[events["block"][allocated]]) - 1
        reserved[allocated] = np.where(before >= 0, level[np.maximum(before, 0)], 0)
        came = (kind == Kind.DEVICE_ALLOC) & ~is_start
        later = np.flatnonzero(~is_start)
        changes = np.column_stack(
            [
                np.searchsorted(self.born[events["block"][allocated]], device[later]),
                kind[later] == Kind.DEVICE_ALLOC,
                address[later],
                size[later],
            ]
        )
        return Recorded(
            settings=settings,
            segments=segments,
            blocks=placed,
            events=events,
            time_ns=times,
            reserved=reserved,
            places=np.column_stack([address[came], size[came]]),
            address=self.address,
            changes=changes.astype(np.int64),
            retries=sum(flag != NOT_FOUND for flag in flags.values()),
            problems=tuple(problems),
        )

    def _recorded_events(
        self,
        rows: Ints,
        old: Ints,
        extra: np.ndarray,
        at: NDArray[np.float64],
        flags: dict[int, int],
    ) -> tuple[np.ndarray, Ints]:
        """Events after the start: of blocks that are there then only the frees."""
        events, times = self._events(np.concatenate([old, rows]), extra, at, flags)
        begins = (events["kind"] == ALLOC) & np.isin(events["block"], old)
        return events[~begins], times[~begins]

    def _placed(self, segments: list[StartSegment]) -> tuple[list[StartBlock], list[int]]:
        """Blocks that are there at the start, as far as they lie in its segments; those left."""
        begins = np.array([each.address for each in segments], np.int64)
        ends = np.array([each.address + each.bytes for each in segments], np.int64)
        placed, left, end = [], [], 0
        for block in range(self.older):
            at, size = int(self.address[block]), int(self.block_bytes[block])
            place = int(np.searchsorted(begins, at, side="right")) - 1
            if place < 0 or at + size > ends[place] or at < end:
                left.append(block)
                continue
            end = at + size
            placed.append(StartBlock(block, at, size, int(self.size[block])))
        return placed, left


def _given_back(runs: list[_Run], idle: list[_Run]) -> tuple[np.ndarray, NDArray[np.float64]]:
    """Events of runs and where each belongs; private pools are idle from some of the runs on."""
    lanes = [(run.at - JUST_BEFORE, lane) for run in idle for lane in run.idle]
    made = np.zeros(len(lanes) + len(runs), EVENT_DTYPE)
    made["kind"] = [IDLE] * len(lanes) + [run.kind for run in runs]
    made["lane"][: len(lanes)] = [lane for _, lane in lanes]
    made["bytes"][len(lanes) :] = [run.bytes for run in runs]
    return made, np.array([at for at, _ in lanes] + [run.at for run in runs], np.float64)


class _Start:
    """The segments that are older than the trace, as they were.

    The recording has stretches of addresses in which segments lie side by side. Each of these is in
    the segments at the end, or the driver got it back in the trace.
    """

    def __init__(
        self,
        built: _Builder,
        settings: Settings,
        kind: np.ndarray,
        address: Ints,
        size: Ints,
        device: Ints,
        is_start: np.ndarray,
    ) -> None:
        self.built = built
        freed = kind == Kind.DEVICE_FREE
        self.went = device[freed]
        self.went_from, self.went_to = address[freed], address[freed] + size[freed]
        self.unused: dict[int, list[int]] = {}
        self.lanes: dict[int, int] = {}
        stretches = sorted(zip(address[is_start].tolist(), size[is_start].tolist(), strict=True))
        self.stretches = [(at, at + length) for at, length in stretches]
        table = built.recording.segments
        self.table = table[table["accelerator"] == built._accelerator()]
        self.expandable = settings.expandable_segments or bool(
            len(self.table) and self.table["expandable"].all()
        )
        self.changes = list(
            zip(
                (kind[~is_start] == Kind.DEVICE_ALLOC).tolist(),
                address[~is_start].tolist(),
                size[~is_start].tolist(),
                strict=True,
            )
        )

    def segments(self) -> list[StartSegment]:
        """Each of them, in the order of addresses."""
        grown = [each for each in self.stretches if self._expands(*each)]
        others = [each for each in self.stretches if not self._expands(*each)]
        made = [self._segment(*each, expandable=True) for each in self._runs(grown)]
        made += [self._segment(*each, expandable=False) for each in self._pieces(others)]
        return sorted(made, key=lambda each: each.address)

    def _within(self, begin: int, end: int) -> pd.DataFrame:
        """Segments at the end that have some of these addresses."""
        ends = self.table["address"] + self.table["total_bytes"]
        return self.table[(self.table["address"] < end) & (ends > begin)]

    def _expands(self, begin: int, end: int) -> bool:
        """Whether it is a part of an expandable segment."""
        mine = self._within(begin, end)
        return bool(mine["expandable"].iloc[0]) if len(mine) else self.expandable

    @staticmethod
    def _runs(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pages that are mapped side by side as one."""
        runs: list[tuple[int, int]] = []
        for begin, end in stretches:
            if runs and runs[-1][1] == begin:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((begin, end))
        return runs

    def _pieces(self, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Each stretch cut where the allocator asked anew."""
        cuts: set[int] = set()
        gone: set[int] = set()
        for came, at, size in self.changes:
            if came:
                gone.add(at)
            elif at not in gone:
                cuts.update((at, at + size))
                gone.add(at)
        for at, size in zip(
            self.table["address"].tolist(), self.table["total_bytes"].tolist(), strict=True
        ):
            if at not in gone:
                cuts.update((at, at + size))
        ordered = np.array(sorted(cuts), np.int64)
        pieces: list[tuple[int, int]] = []
        for begin, end in stretches:
            inside = ordered[
                np.searchsorted(ordered, begin, side="right") : np.searchsorted(ordered, end)
            ]
            ends = [*inside.tolist(), end]
            pieces += zip([begin, *inside.tolist()], ends, strict=True)
        return pieces

    def _segment(self, begin: int, end: int, expandable: bool) -> StartSegment:
        """A segment, with the lane of the blocks that were in it, or that it has at the end."""
        built = self.built
        inside = np.flatnonzero((built.address >= begin) & (built.address < end))
        old = inside[built.is_old[inside]]
        gone = self.went[(self.went_from < end) & (self.went_to > begin)]
        went = int(gone[0]) if len(gone) else -1
        small = end - begin <= 2 * MIB
        if went >= 0:
            inside = inside[built.born[inside] < went]
        elif len(mine := self._within(begin, end)):
            row = mine.iloc[0]
            use = (int(row["stream"]), int(row["pool_owner"]), int(row["pool_number"]))
            return StartSegment(
                begin, end - begin, built.lane_of(use), bool(row["small"]), expandable
            )
        first = old if len(old) else inside
        if len(first):
            lane = int(built.lane[first[0]])
            small = int(built.block_bytes[first].max()) <= MIB if expandable else small
        elif went in self.lanes:
            lane = self.lanes[went]
        else:
            # It served no request before it went: it is in a pool by itself until then.
            lane = built.lane_of((NO_STREAM, NO_STREAM, went))
            self.unused.setdefault(went, []).append(lane)
        return StartSegment(begin, end - begin, lane, small, expandable)

    def unused_of(self, run: _Run) -> list[int]:
        """The lanes of segments that served no request and went in a run."""
        return [lane for row in run.rows for lane in self.unused.get(row, [])]
