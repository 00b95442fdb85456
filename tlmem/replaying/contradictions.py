"""Where a snapshot contradicts itself: its blocks and its segments tell two stories.

Covers: the first event that cannot be, given all before it. Does not cover: a snapshot that is in
order, and that the simulator does not reproduce all the same (``proof``).
"""

from __future__ import annotations

from bisect import bisect_right

from tlmem.replaying.trace import ALLOC, FREE, Recorded, Trace
from tlmem.units import format_bytes


class _Ranges:
    """Ranges of addresses that do not overlap, in order."""

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []

    def covers(self, begin: int, end: int) -> bool:
        """Whether all of a range is in them; ranges that lie side by side are as one."""
        while begin < end:
            place = bisect_right(self.begins, begin) - 1
            if place < 0 or self.ends[place] <= begin:
                return False
            begin = self.ends[place]
        return True

    def touching(self, begin: int, end: int) -> int | None:
        """The begin of one that overlaps a range."""
        place = bisect_right(self.begins, begin) - 1
        if place >= 0 and self.ends[place] > begin:
            return self.begins[place]
        if place + 1 < len(self.begins) and self.begins[place + 1] < end:
            return self.begins[place + 1]
        return None

    def add(self, begin: int, end: int) -> None:
        """One that overlaps none."""
        place = bisect_right(self.begins, begin)
        self.begins.insert(place, begin)
        self.ends.insert(place, end)

    def remove(self, begin: int, end: int) -> None:
        """A range that they cover, or a part of one."""
        while begin < end:
            place = bisect_right(self.begins, begin) - 1
            first, last = self.begins[place], self.ends[place]
            del self.begins[place], self.ends[place]
            if first < begin:
                self.add(first, begin)
            if last > end:
                self.add(end, last)
            begin = last


def contradiction(trace: Trace) -> str | None:
    """The first thing in a trace that its segments do not allow, as half a sentence; None: nothing.

    Blocks are as large here as was asked for, which no allocator undercuts.
    """
    recorded = trace.recorded
    if recorded is None:
        return None
    reserved, used = _Ranges(), _Ranges()
    for segment in recorded.segments:
        at = segment.address
        if (other := reserved.touching(at, at + segment.bytes)) is not None:
            return f"the segment at {at:#x} overlaps the one at {other:#x}"
        reserved.add(at, at + segment.bytes)
    for block in recorded.blocks:
        used.add(block.address, block.address + max(1, block.requested))
    return _in_the_trace(trace, recorded, reserved, used)


def _in_the_trace(trace: Trace, recorded: Recorded, reserved: _Ranges, used: _Ranges) -> str | None:
    changes = recorded.changes.tolist()
    kinds, blocks = recorded.events["kind"].tolist(), recorded.events["block"].tolist()
    done = allocations = 0
    for kind, block in zip(kinds, blocks, strict=True):
        begin = int(recorded.address[block])
        end = begin + int(trace.size[block])
        if kind == FREE and used.covers(begin, begin + 1):
            used.remove(begin, end)
        if kind != ALLOC:
            continue
        while done < len(changes) and changes[done][0] <= allocations:
            _, given, at, size = changes[done]
            done += 1
            if given and (other := reserved.touching(at, at + size)) is not None:
                return (
                    f"the segment of {format_bytes(size)} at {at:#x} comes while the one at "
                    f"{other:#x} is there"
                )
            if not given and not reserved.covers(at, at + size):
                return f"a segment of {format_bytes(size)} goes at {at:#x}, where none is"
            (reserved.add if given else reserved.remove)(at, at + size)
        allocations += 1
        said = f"the block of {format_bytes(end - begin)} at {begin:#x}"
        if not reserved.covers(begin, end):
            return f"{said} lies in no segment that is there then"
        if (other := used.touching(begin, end)) is not None:
            return f"{said} overlaps the one at {other:#x}, which is in use"
        used.add(begin, end)
    return None
