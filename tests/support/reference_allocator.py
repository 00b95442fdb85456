"""A reference for PyTorch's caching allocator for CUDA: what is free is worked out, never kept.

A segment knows which addresses are used and which pages are mapped; a free block is whatever lies
between. So nothing is split, merged or shelved here, and none of the simulator's mistakes in that
can be repeated. Written from ``c10/cuda/CUDACachingAllocator.cpp``, whose functions are named.

Covers: streams, waits for them, private pools and their graphs, expandable segments, the settings,
a memory fraction, running out of memory, snapshots. Does not cover: speed. Shares nothing with
``native/replay``, and imports nothing of tlmem.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.cuda_snapshot import (
    LARGE_SEGMENT,
    LOOP,
    MAIN,
    MB,
    SMALL,
    SMALL_SEGMENT,
    Block,
    Device,
    Frames,
    Segment,
    Simulation,
    frame,
)

DEFAULT = (0, 0)
Lane = tuple[bool, int, tuple[int, int]]
"""Small or large, stream, pool."""
Gap = tuple[int, int, "Space"]
"""Bytes, address, and where: in the order in which blocks are looked for."""


class OutOfMemory(Exception):
    """The device has no more, or the process may not have more."""


@dataclass
class Used:
    """Addresses that serve a request."""

    size: int
    asked: int
    frames: Frames
    waits: bool = False


@dataclass(eq=False)
class Space:
    """A segment, or the addresses of an expandable one with the pages of them that are mapped."""

    at: int
    size: int
    lane: Lane
    frames: Frames
    page: int = 0
    mapped: set[int] = field(default_factory=set)
    used: dict[int, Used] = field(default_factory=dict)
    free_since: int = 0

    def runs(self, are_mapped: bool) -> Iterator[tuple[int, int]]:
        """Begin and end of pages side by side that are all mapped, or all are not."""
        if not self.page:
            if are_mapped:
                yield self.at, self.at + self.size
            return
        edges = sorted(self.mapped | {page + 1 for page in self.mapped})
        begin, last = 0, self.size // self.page
        for edge in [*edges, last]:
            if edge > begin and (begin in self.mapped) == are_mapped:
                end = edge
                if are_mapped and edge in self.mapped:
                    continue
                yield self.at + begin * self.page, self.at + end * self.page
            if not (are_mapped and begin in self.mapped and edge in self.mapped):
                begin = edge

    def gaps(self) -> Iterator[tuple[int, int]]:
        """Begin and end of what is mapped and not used."""
        for begin, end in self.runs(True):
            at = begin
            for start in sorted(each for each in self.used if begin <= each < end):
                if start > at:
                    yield at, start
                at = start + self.used[start].size
            if end > at:
                yield at, end


class ReferenceAllocator(Device):
    """One device. ``capacity`` is what the driver has, ``allowed`` what the process may have."""

    def __init__(
        self,
        *,
        ring: int = 10**9,
        expandable: bool = False,
        max_split: int = 0,
        rounding: int = 20 * MB,
        divisions: int = 0,
        large: int = LARGE_SEGMENT,
        capacity: int = 0,
        allowed: int = 0,
        collect: float = 0.0,
        own_pools: tuple[tuple[int, int], ...] = (),
    ) -> None:
        super().__init__(0, ring, expandable)
        self.max_split, self.rounding, self.divisions = max_split, rounding, divisions
        self.large, self.capacity, self.allowed, self.collect = large, capacity, allowed, collect
        self.own_pools = own_pools
        self.spaces: list[Space] = []
        self.places: dict[int, Space] = {}
        self.over: set[int] = set()
        self.capturing: list[tuple[int, int]] = []
        self.freeable: set[tuple[int, int]] = set()
        self.searches: dict[Lane, int] = {}
        self.retries = self.failures = 0

    # ---- malloc ----

    def alloc(
        self, size: int, frames: Frames, stream: int = 0, pool: tuple[int, int] = DEFAULT
    ) -> int:
        """malloc: allocates, and returns the address. A pool is given while its graph is captured.

        Raises:
            OutOfMemory: what could go back went back, and it is refused all the same.
        """
        if not self.capturing:
            self.process_events(frames)
        need = self.round_size(size)
        lane = (need <= SMALL, stream, pool)
        gap = self.get_free_block(need, lane)
        if gap is None:
            if self.allowed and self.collect:
                self.garbage_collect(frames)
            gap = self.alloc_block(need, lane, frames)
        if gap is None and self.release_available(need, lane, frames):
            gap = self.alloc_block(need, lane, frames)
        if gap is None and not self.capturing:
            self.release_cached(frames)
            self.retries += 1
            gap = self.alloc_block(need, lane, frames)
        if gap is None:
            self.failures += 1
            self.entry("oom", self.capacity - self.reserved, need, stream, frames)
            raise OutOfMemory
        length, address, space = gap
        rest = length - need
        if lane[0] or self.expands(lane):  # should_split
            length = need if rest >= 512 else length
        elif rest > SMALL and (not self.max_split or need < self.max_split):
            length = need
        space.used[address] = Used(length, size, frames)
        self.places[address] = space
        self.allocated += length
        self.requested += size
        self.say("alloc", address, size, lane, frames)
        return address

    def round_size(self, size: int) -> int:
        """round_size and roundup_power2_next_division."""
        if size < 512:
            return 512
        if self.divisions > 1 and size > 512 * self.divisions:
            power = 1 << (size.bit_length() - 1)
            step = power // self.divisions
            return next(each for each in range(power, 2 * power + 1, step) if each >= size)
        return size + -size % 512

    def expands(self, lane: Lane) -> bool:
        """Whether expandable segments are active for it."""
        return self.expandable and lane[2] not in self.own_pools

    def gaps(self, lane: Lane) -> list[Gap]:
        """Free blocks, the smallest and lowest first."""
        return sorted(
            ((end - begin, begin, space) for space in self.spaces if space.lane == lane
             for begin, end in space.gaps()),
            key=lambda gap: gap[:2],
        )  # fmt: skip

    def get_free_block(self, need: int, lane: Lane) -> Gap | None:
        """get_free_block."""
        key = (lane[0], 0, lane[2])
        self.searches[key] = self.searches.get(key, 0) + bool(self.allowed and self.collect)
        fits = [gap for gap in self.gaps(lane) if gap[0] >= need]
        if not fits:
            return None
        best = 0
        if fits[0][2].page and self.expands(lane):
            while (
                fits[best][2].page
                and best + 1 < len(fits)
                and self.expandable_size(fits[best + 1]) < self.expandable_size(fits[best])
            ):
                best += 1
        size = fits[best][0]
        if self.max_split and need < self.max_split <= size:
            return None
        if self.max_split and need >= self.max_split and size >= need + self.rounding:
            return None
        return fits[best]

    @staticmethod
    def expandable_size(gap: Gap) -> int:
        """What a block can grow to."""
        size, begin, space = gap
        behind = [end - start for start, end in space.runs(False) if start == begin + size]
        return size + sum(behind)

    # ---- alloc_block ----

    def allocation_size(self, need: int) -> int:
        """get_allocation_size."""
        if need <= SMALL:
            return SMALL_SEGMENT
        return self.large if need < 10 * MB else need + -need % (2 * MB)

    def driver_has(self, size: int) -> bool:
        """Whether the driver grants so much more."""
        return not self.capacity or self.reserved + size <= self.capacity

    def alloc_block(self, need: int, lane: Lane, frames: Frames) -> Gap | None:
        """alloc_block; None: refused."""
        total = self.allocation_size(need)
        if self.allowed and self.reserved + total > self.allowed:
            return None
        if self.expands(lane):
            return self.alloc_expandable(need, lane, frames)
        if not self.driver_has(total):
            return None
        space = Space(self.vacant(total), total, lane, frames)
        self.spaces.append(space)
        self.reserved += total
        self.say("segment_alloc", space.at, total, lane, frames)
        return total, space.at, space

    def vacant(self, size: int) -> int:
        """Where the driver puts a segment: the lowest addresses that are left."""
        at = self.top
        for begin, end in sorted((each.at, each.at + each.size) for each in self.spaces):
            if begin - at >= size:
                break
            at = max(at, end)
        return at

    def alloc_expandable(self, need: int, lane: Lane, frames: Frames) -> Gap | None:
        """find_expandable_block, map_block and try_allocate_expandable_block."""
        space, begin = self.place(need, lane, frames)
        for start, end in list(space.runs(False)):
            if end <= begin or start >= begin + need:
                continue
            first = (start - space.at) // space.page
            pages = -(-(min(end, begin + need) - start) // space.page)
            if not self.driver_has(pages * space.page):
                return None
            space.mapped.update(range(first, first + pages))
            self.reserved += pages * space.page
            self.say("segment_map", start, pages * space.page, lane, frames)
        return next((size, at, each) for size, at, each in self.gaps(lane) if at == begin)

    def place(self, need: int, lane: Lane, frames: Frames) -> tuple[Space, int]:
        """The lowest address at which so much is free or can be mapped."""
        for space in sorted(self.spaces, key=lambda each: each.at):
            if space.lane != lane or not space.page:
                continue
            for start, _ in space.runs(False):
                begin = next((low for low, high in space.gaps() if high == start), start)
                above = [at for at in space.used if at >= begin]
                if min(above, default=space.at + space.size) - begin >= need:
                    return space, begin
        page = SMALL_SEGMENT if lane[0] else self.large
        room = self.capacity + self.capacity // 8 if self.capacity else 1 << 40
        room += -room % page
        space = Space(self.vacant(room), room, lane, frames, page)
        self.spaces.append(space)
        return space, space.at

    # ---- free, record_stream ----

    def free(self, address: int, frames: Frames, wait: bool = False) -> None:
        """free; with ``wait`` another stream still uses the block, until ``finish``."""
        space = self.places[address]
        block = space.used[address]
        self.allocated -= block.size
        self.requested -= block.asked
        block.waits = True
        self.say("free_requested", address, block.asked, space.lane, frames)
        if wait:
            self.waiting.append(address)
        else:
            self.free_block(address, frames)

    def free_block(self, address: int, frames: Frames) -> None:
        """free_block."""
        space = self.places.pop(address)
        block = space.used.pop(address)
        small, _, pool = space.lane
        space.free_since = self.searches.get((small, 0, pool), 0)
        self.say("free_completed", address, block.asked, space.lane, frames)

    def finish(self, share: float, chance: random.Random) -> None:
        """Some of the blocks are not used by other streams any more; malloc will see that."""
        self.over |= {each for each in self.waiting if chance.random() < share}

    def process_events(self, frames: Frames) -> None:
        """process_events."""
        for address in [each for each in self.waiting if each in self.over]:
            self.waiting.remove(address)
            self.over.discard(address)
            self.free_block(address, frames)

    # ---- graphs ----

    def reset(self, pool: tuple[int, int]) -> None:
        """releasePool: the last graph of the pool is gone."""
        self.freeable.add(pool)

    # ---- what goes back ----

    def is_whole(self, space: Space) -> bool:
        """Whether it is a segment that is free as a whole."""
        return not space.page and not space.used

    def release(self, space: Space, frames: Frames) -> None:
        """release_block."""
        self.spaces.remove(space)
        self.reserved -= space.size
        self.say("segment_free", space.at, space.size, space.lane, frames)

    def empty_cache(self, frames: Frames) -> None:
        """emptyCache."""
        self.release_cached(frames)

    def release_cached(self, frames: Frames) -> None:
        """release_cached_blocks and synchronize_and_free_events."""
        self.over |= set(self.waiting)
        self.process_events(frames)
        for space in list(self.spaces):
            if space.lane[2] != DEFAULT and space.lane[2] not in self.freeable:
                continue
            if space.page:
                self.unmap(space, frames)
            elif not space.used:
                self.release(space, frames)

    def unmap(self, space: Space, frames: Frames) -> None:
        """unmap_block for each free block, release_expandable_segment."""
        for begin, end in sorted(space.gaps(), key=lambda gap: (gap[1] - gap[0], gap[0])):
            first = -(-(begin - space.at) // space.page)
            last = (end - space.at) // space.page
            if first < last:
                space.mapped -= set(range(first, last))
                size = (last - first) * space.page
                self.reserved -= size
                at = space.at + first * space.page
                self.say("segment_unmap", at, size, space.lane, frames)
        if not space.mapped:
            self.spaces.remove(space)

    def release_available(self, need: int, lane: Lane, frames: Frames) -> bool:
        """release_available_cached_blocks."""
        if not self.max_split:
            return False
        wanted = max(need, self.max_split)
        gaps = self.gaps(lane)
        enough = [gap for gap in gaps if gap[0] >= wanted]
        if enough and not enough[0][2].page:
            self.release(enough[0][2], frames)
            return True
        given = 0
        for size, _, space in reversed([gap for gap in gaps if gap not in enough]):
            if given >= wanted or size < self.max_split:
                break
            if not space.page:
                given += size
                self.release(space, frames)
        return given >= wanted

    def garbage_collect(self, frames: Frames) -> None:
        """garbage_collect_cached_blocks."""
        limit = int(self.collect * self.allowed)
        target, given = self.reserved - limit, 0
        now = self.searches.get((False, 0, DEFAULT), 0)
        while given < target:
            idle = [each for each in self.spaces if self.is_whole(each)
                    and not each.lane[0] and each.lane[2] == DEFAULT]  # fmt: skip
            if not idle:
                return
            mean = sum(now - each.free_since for each in idle) / len(idle)
            for space in [each for each in idle if now - each.free_since >= mean]:
                given += space.size
                self.release(space, frames)

    # ---- the snapshot ----

    def say(self, action: str, at: int, size: int, lane: Lane, frames: Frames) -> None:
        """One more entry of the trace, with its pool."""
        self.entry(action, at, size, lane[1], frames)
        self.trace[-1]["pool_id"] = lane[2]

    def snapshot(self) -> dict[str, Any]:
        """As ``torch.cuda.memory._snapshot()`` gives it: of expandable ones the mapped runs."""
        self.segments, grown = [], {}
        for space in sorted(self.spaces, key=lambda each: each.at):
            small, stream, pool = space.lane
            for begin, end in space.runs(True):
                made = Segment(begin, end - begin, stream, small, pool, space.frames)
                made.blocks = [
                    Block(at, stop - at) for at, stop in space.gaps() if begin <= at < end
                ]
                made.blocks += [
                    Block(at, each.size, "active_pending_free" if each.waits else
                          "active_allocated", each.asked, each.frames)
                    for at, each in space.used.items() if begin <= at < end
                ]  # fmt: skip
                made.blocks.sort(key=lambda block: block.address)
                self.segments.append(made)
                grown[begin] = bool(space.page)
        made = Simulation([self]).snapshot()
        for segment in made["segments"]:
            segment["is_expandable"] = grown[segment["address"]]
        settings = made["allocator_settings"]
        line = {"max_non_split_rounding_mb": self.rounding // MB, "large_segment_size_mb":
                self.large // MB}  # fmt: skip
        settings["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(f"{key}:{n}" for key, n in line.items())
        settings["max_split_size"] = self.max_split or -1
        settings["garbage_collection_threshold"] = self.collect
        settings["roundup_power2_divisions"] = {
            str(1 << power): self.divisions for power in range(16)
        }
        return made

    def write(self, path: Path) -> Path:
        """Writes the snapshot and returns its path."""
        path.write_bytes(pickle.dumps(self.snapshot(), protocol=4))
        return path


def program(
    device: ReferenceAllocator,
    steps: int,
    seed: int = 1,
    *,
    streams: int = 1,
    empties: int = 0,
    graphs: int = 0,
    waits: float = 0.0,
    largest: int = 60 * MB,
) -> ReferenceAllocator:
    """Steps whose sizes differ, on several streams, some of which keep a block for good.

    Args:
        empties: the cache is emptied in each step of this number; 0: never.
        graphs: in each step of this number a graph is captured, and an earlier one goes; 0: never.
        waits: this part of the blocks waits for another stream.
    """
    chance = random.Random(seed)
    lines = [device.stack(frame("/home/u/train.py", 20 + n, "step"), LOOP, MAIN) for n in range(9)]
    empty = device.stack(frame("/opt/torch/cuda/memory.py", 222, "empty_cache"), MAIN)
    kept: list[int] = []
    pools: list[tuple[tuple[int, int], list[int]]] = []
    made = 0

    def new(pool: tuple[int, int] = DEFAULT) -> list[int]:
        nonlocal made
        made += 1
        most = chance.choice([4_000, 700_000, 3 * MB, 16 * MB, largest])
        with suppress(OutOfMemory):  # the program goes on without it
            line, stream = lines[made % len(lines)], chance.randrange(streams)
            return [device.alloc(chance.randint(1, most), line, stream, pool)]
        return []

    for step in range(steps):
        live: list[int] = []
        for _ in range(12):
            live += new()
            if live and chance.random() < 0.4:
                device.free(live.pop(chance.randrange(len(live))), lines[0])
        if live and step % 3 == 0:
            kept.append(live.pop())
        if len(kept) > 8:
            device.free(kept.pop(0), lines[1])
        for at in live:
            device.free(at, lines[2], wait=chance.random() < waits)
        if waits:
            device.finish(0.6, chance)
        if graphs and step % graphs == graphs - 1:
            pools.append(((1 + step, 0), []))
            device.capturing.append(pools[-1][0])
            pools[-1][1].extend(at for _ in range(6) for at in new(pools[-1][0]))
            device.capturing.pop()
        if len(pools) > 2:
            pool, outputs = pools.pop(0)
            device.reset(pool)
            for at in outputs:
                device.free(at, lines[4])
        if empties and step % empties == empties - 1:
            device.empty_cache(empty)
        device.now += 1000
    return device
