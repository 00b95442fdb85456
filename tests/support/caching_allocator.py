"""PyTorch's caching allocator for CUDA in plain lists, to make snapshots whose every step is known.

Covers what ``cuda_snapshot`` leaves out: expandable segments whose free blocks can grow, pages that
go back, ``max_split_size_mb``, divisions of powers of two, retries on a device that is too small,
collection of idle segments. Does not cover: speed. Shares nothing with ``native/replay``, and
imports nothing of tlmem.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.cuda_snapshot import (
    LARGE_SEGMENT,
    LOOP,
    MAIN,
    MB,
    ROUND_SEGMENT,
    SMALL,
    SMALL_SEGMENT,
    Block,
    Device,
    Frames,
    Segment,
    Simulation,
    frame,
)

UNMAPPED = "unmapped"


class OutOfMemory(Exception):
    """The device has no more."""


class CachingDevice(Device):
    """One device. ``spaces`` are segments; of expandable ones all their addresses."""

    def __init__(
        self,
        *,
        ring: int = 10**9,
        expandable: bool = False,
        max_split: int = 0,
        divisions: int = 0,
        capacity: int = 0,
        collect: float = 0.0,
    ) -> None:
        super().__init__(0, ring, expandable)
        self.max_split, self.divisions, self.capacity = max_split, divisions, capacity
        self.collect = collect
        self.spaces: list[Segment] = []
        self.searches = 0
        self.shelved: dict[int, int] = {}
        self.retries = 0

    # ---- one allocation ----

    def rounded(self, size: int) -> int:
        """What a request becomes."""
        if size < 512:
            return 512
        if self.divisions > 1 and size > 512 * self.divisions:
            unit = (1 << (size.bit_length() - 1)) // self.divisions
            return -(-size // unit) * unit
        return -(-size // 512) * 512

    def alloc(
        self, size: int, frames: Frames, stream: int = 0, pool: tuple[int, int] = (0, 0)
    ) -> int:
        """Allocates; returns the address.

        Raises:
            OutOfMemory: not even after all that is cached was given back.
        """
        room = self.rounded(size)
        small = room <= SMALL
        if self.collect and self.capacity and not small and pool == (0, 0):
            self.searches += 1
        found = self.best(room, small, stream, pool)
        if found is None:
            found = self.obtained(room, small, stream, pool, frames)
        space, block = found
        rest = block.size - room
        if small or self.expandable:
            splits = rest >= 512
        else:
            splits = rest > SMALL and (not self.max_split or room < self.max_split)
        if splits:
            at = space.blocks.index(block)
            space.blocks.insert(at + 1, Block(block.address + room, rest))
            self.shelved[block.address + room] = self.searches
            block.size = room
        block.state, block.requested, block.frames = "active_allocated", size, frames
        self.where[block.address] = space, block
        self.allocated += block.size
        self.requested += size
        self.entry("alloc", block.address, size, stream, frames)
        return block.address

    def free_blocks(self, small: bool, stream: int, pool: tuple[int, int]) -> list[Any]:
        """What may serve such a request, the smallest and lowest first."""
        found = [
            (block.size, block.address, space, block)
            for space in self.spaces
            if (space.small, space.stream, space.pool) == (small, stream, pool)
            for block in space.blocks
            if block.state == "inactive"
        ]
        return sorted(found, key=lambda each: each[:2])

    def best(self, room: int, small: bool, stream: int, pool: tuple[int, int]) -> Any:
        """A cached block; None: none fits."""
        fits = [each for each in self.free_blocks(small, stream, pool) if each[0] >= room]
        if not fits:
            return None
        place = 0
        if self.expandable:
            while place + 1 < len(fits) and self.reach(fits[place + 1]) < self.reach(fits[place]):
                place += 1
        size, _, space, block = fits[place]
        if self.max_split:
            if room < self.max_split <= size:
                return None
            if room >= self.max_split and size >= room + LARGE_SEGMENT:
                return None
        return space, block

    @staticmethod
    def reach(found: Any) -> int:
        """The size that a free block can grow to."""
        _, _, space, block = found
        at = space.blocks.index(block)
        after = space.blocks[at + 1] if at + 1 < len(space.blocks) else None
        return block.size + (after.size if after and after.state == UNMAPPED else 0)

    # ---- what the driver gives ----

    def has(self, size: int) -> bool:
        """Whether the device has so much more."""
        return not self.capacity or self.reserved + size <= self.capacity

    def obtained(
        self, room: int, small: bool, stream: int, pool: tuple[int, int], frames: Frames
    ) -> Any:
        """A block from the driver, before which some may have to go back."""
        if self.collect and self.capacity and self.reserved > int(self.collect * self.capacity):
            self.collect_idle(self.reserved - int(self.collect * self.capacity), frames)
        kind = (small, stream, pool)
        found = self.asked(room, kind, frames)
        if found is None and self.max_split and self.give_large_back(room, kind, frames):
            found = self.asked(room, kind, frames)
        if found is None:
            self.retries += 1
            self.empty_cache(frames)
            found = self.asked(room, kind, frames)
        if found is None:
            self.entry("oom", self.capacity - self.reserved, room, stream, frames)
            raise OutOfMemory
        return found

    def asked(self, room: int, kind: Any, frames: Frames) -> Any:
        """The same, asked once; None: refused."""
        if self.expandable:
            return self.mapped(room, kind, frames)
        small, stream, pool = kind
        total = SMALL_SEGMENT if small else LARGE_SEGMENT
        if room >= LARGE_SEGMENT // 2:
            total = -(-room // ROUND_SEGMENT) * ROUND_SEGMENT
        if not self.has(total):
            return None
        space = Segment(self.top, total, stream, small, pool, frames, [Block(self.top, total)])
        self.top += total
        self.spaces.append(space)
        self.reserved += total
        self.entry("segment_alloc", space.address, total, stream, frames)
        return space, space.blocks[0]

    def mapped(self, room: int, kind: Any, frames: Frames) -> Any:
        """Grows the lowest place of an expandable segment that can hold so much."""
        small, stream, pool = kind
        page = SMALL_SEGMENT if small else LARGE_SEGMENT
        place = next(self.places(room, kind), None)
        if place is None:
            whole = 1 << 42
            space = Segment(self.top, whole, stream, small, pool, frames)
            space.blocks.append(Block(self.top, whole, UNMAPPED))
            self.top += whole
            self.spaces.append(space)
            place = space, space.blocks[0]
        space, block = place
        while block.state == UNMAPPED or block.size < room:
            missing = room if block.state == UNMAPPED else room - block.size
            at = space.blocks.index(block)
            grown = block if block.state == UNMAPPED else space.blocks[at + 1]
            more = -(-min(missing, grown.size) // page) * page
            if not self.has(more):
                return None
            if grown.size > more:
                rest = Block(grown.address + more, grown.size - more, UNMAPPED)
                space.blocks.insert(space.blocks.index(grown) + 1, rest)
                grown.size = more
            grown.state = "inactive"
            self.reserved += more
            self.entry("segment_map", grown.address, more, stream, frames)
            block = self.joined(space, grown)
        return space, block

    def places(self, room: int, kind: Any) -> Iterator[Any]:
        """Where free and unmapped blocks side by side have room, by address."""
        for space in sorted(self.spaces, key=lambda each: each.address):
            if (space.small, space.stream, space.pool) != kind:
                continue
            for at, block in enumerate(space.blocks):
                if block.state != UNMAPPED:
                    continue
                begin = at - 1 if at and space.blocks[at - 1].state == "inactive" else at
                size, end = 0, begin
                while end < len(space.blocks) and space.blocks[end].state in (UNMAPPED, "inactive"):
                    size += space.blocks[end].size
                    end += 1
                if size >= room:
                    yield space, space.blocks[begin]

    def joined(self, space: Segment, block: Block) -> Block:
        """A free block made one with free neighbours."""
        at = space.blocks.index(block)
        first = at - 1 if at and space.blocks[at - 1].state == block.state else at
        last = (
            at + 1
            if at + 1 < len(space.blocks) and space.blocks[at + 1].state == block.state
            else at
        )
        space.blocks[first].size = sum(each.size for each in space.blocks[first : last + 1])
        del space.blocks[first + 1 : last + 1]
        self.shelved[space.blocks[first].address] = self.searches
        return space.blocks[first]

    @staticmethod
    def merge(segment: Segment, block: Block) -> None:
        """Nothing: ``complete`` joins."""

    def complete(self, frames: Frames, address: int | None = None) -> None:
        """Ends the wait of one block, or of all."""
        for each in [address] if address is not None else list(self.waiting):
            self.waiting.remove(each)
            space, block = self.where.pop(each)
            asked, block.state, block.requested = block.requested, "inactive", 0
            self.joined(space, block)
            self.entry("free_completed", each, asked, space.stream, frames)

    # ---- what goes back ----

    def release(self, space: Segment, frames: Frames) -> None:
        """A whole segment goes back."""
        self.spaces.remove(space)
        self.reserved -= space.total
        self.entry("segment_free", space.address, space.total, space.stream, frames)

    def is_idle(self, space: Segment) -> bool:
        """Whether a segment is free as a whole, and may go back."""
        return (
            not self.expandable
            and [block.state for block in space.blocks] == ["inactive"]
            and space.pool == (0, 0)
        )

    def empty_cache(self, frames: Frames) -> None:
        """All that is free goes back."""
        self.complete(frames)
        for space in list(self.spaces):
            if self.is_idle(space):
                self.release(space, frames)
            elif self.expandable and space.pool == (0, 0):
                self.unmap(space, frames)

    def unmap(self, space: Segment, frames: Frames) -> None:
        """Free pages of an expandable segment go back."""
        page = SMALL_SEGMENT if space.small else LARGE_SEGMENT
        for block in [each for each in space.blocks if each.state == "inactive"]:
            begin = space.address + -(-(block.address - space.address) // page) * page
            end = space.address + (block.address + block.size - space.address) // page * page
            if begin >= end:
                continue
            at = space.blocks.index(block)
            parts = [
                Block(block.address, begin - block.address),
                Block(begin, end - begin, UNMAPPED),
                Block(end, block.address + block.size - end),
            ]
            middle = parts[1]
            space.blocks[at : at + 1] = [part for part in parts if part.size]
            self.joined(space, middle)
            self.reserved -= end - begin
            self.entry("segment_unmap", begin, end - begin, space.stream, frames)

    def give_large_back(self, room: int, kind: Any, frames: Frames) -> bool:
        """Blocks that are not split go back: the smallest that is enough, else the largest."""
        wanted = max(room, self.max_split)
        small, stream, pool = kind
        free = self.free_blocks(small, stream, pool)
        enough = [each for each in free if each[0] >= wanted and self.is_idle(each[2])]
        if enough:
            self.release(enough[0][2], frames)
            return True
        given = 0
        for size, _, space, _ in reversed(free):
            if given >= wanted or size < self.max_split:
                break
            if self.is_idle(space):
                given += size
                self.release(space, frames)
        return given >= wanted

    def collect_idle(self, target: int, frames: Frames) -> None:
        """Segments that were idle for longer than the mean go back, until that is enough."""
        given = 0
        while given < target:
            idle = [each for each in self.spaces if self.is_idle(each) and not each.small]
            if not idle:
                return
            age = {each.address: self.searches - self.shelved.get(each.address, 0) for each in idle}
            mean = sum(age.values()) / len(idle)
            for space in [each for each in idle if age[each.address] >= mean]:
                given += space.total
                self.release(space, frames)

    # ---- the snapshot ----

    def finish(self) -> None:
        """Writes ``segments`` as a snapshot has them: of expandable ones the mapped runs."""
        self.segments = []
        for space in self.spaces:
            run: Segment | None = None
            for block in space.blocks:
                if block.state == UNMAPPED:
                    run = None
                    continue
                if run is None:
                    run = Segment(
                        block.address, 0, space.stream, space.small, space.pool, space.frames
                    )
                    self.segments.append(run)
                run.blocks.append(block)
                run.total += block.size

    def snapshot(self) -> dict[str, Any]:
        """As ``torch.cuda.memory._snapshot()`` gives it."""
        self.finish()
        made = Simulation([self]).snapshot()
        settings = made["allocator_settings"]
        settings["max_split_size"] = self.max_split or -1
        settings["garbage_collection_threshold"] = self.collect
        settings["roundup_power2_divisions"] = {
            str(1 << power): self.divisions for power in range(16)
        }
        for entry in made["device_traces"][0]:
            del entry["pool_id"]
        return made

    def write(self, path: Path) -> Path:
        """Writes the snapshot and returns its path."""
        path.write_bytes(pickle.dumps(self.snapshot(), protocol=4))
        return path


def mixed(
    device: CachingDevice,
    steps: int,
    seed: int = 1,
    streams: int = 1,
    empties: int = 0,
    pool_every: int = 0,
    waits: bool = False,
    largest: int = 60 * MB,
) -> CachingDevice:
    """Steps whose sizes differ, on several streams, some of which keep a block for good.

    Args:
        empties: the cache is emptied in each step of this number; 0: never.
        pool_every: each such block is of a private pool; 0: none is.
        waits: whether some blocks wait for another stream.
    """
    chance = random.Random(seed)
    lines = [device.stack(frame("/home/u/train.py", 20 + n, "step"), LOOP, MAIN) for n in range(9)]
    empty = device.stack(frame("/opt/torch/cuda/memory.py", 222, "empty_cache"), MAIN)
    kept: list[int] = []
    made = 0
    for step in range(steps):
        live: list[int] = []
        for _ in range(12):
            made += 1
            most = chance.choice([4_000, 700_000, 3 * MB, 16 * MB, largest])
            pool = (0, 2) if pool_every and made % pool_every == 0 else (0, 0)
            at = device.alloc(
                chance.randint(1, most),
                lines[made % len(lines)],
                stream=chance.randrange(streams),
                pool=pool,
            )
            live.append(at)
            if chance.random() < 0.4:
                device.free(live.pop(chance.randrange(len(live))), lines[0])
        if step % 3 == 0:
            kept.append(live.pop())
        if len(kept) > 8:
            device.free(kept.pop(0), lines[1])
        for at in live:
            device.free(at, lines[2], wait=waits and chance.random() < 0.2)
        if waits and step % 2:
            device.complete(lines[3])
        if empties and step % empties == empties - 1:
            device.empty_cache(empty)
        device.now += 1000
    return device
