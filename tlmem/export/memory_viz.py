"""A recording as a memory snapshot of PyTorch, for https://pytorch.org/memory_viz.

Covers: allocations and frees in order, with stacks, and the blocks that are alive at the end. An
accelerator has its own number; every other kind of memory is a device behind them, with addresses
for objects that have only handles, and segments around all that was used. What an imported snapshot
said of segments, requests and annotations is written as it was.
Does not cover: holders and samples, for which that viewer has no place.
Source: the docstring of ``_snapshot`` in torch/cuda/memory.py, "Snapshot".
"""

from __future__ import annotations

import heapq
import itertools
import pickle
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import is_imported
from tlmem.events import (
    DEVICE_NAMES,
    FIRST_RUNTIME_DEVICE,
    OUT_OF_MEMORY,
    SNAPSHOT_LABEL,
    Device,
    Kind,
)
from tlmem.recording.format.allocator_state import ACCELERATOR_BITS, PINNED_HOST
from tlmem.recording.format.limits import MOST_STACK_DEPTH, most_objects_in_python
from tlmem.recording.reader import Recording

PROTOCOL = 4
"""The viewer reads no later one."""
MOST_OBJECTS = 250_000
"""Each is three entries; browsers give up on files of more than about 1 GB."""

MOST_FRAMES = 2_000_000
INNERMOST = 16
NUMBERED = re.compile(r"snapshot\.\d+")
ANNOTATIONS_THREAD = 1
"""Thread of an imported recording that has the marks of all accelerators."""

Ints = NDArray[np.int64]

GRAIN_BYTES = 512
"""Made-up addresses are multiples of this, as those of PyTorch's own allocator are."""
FIRST_ADDRESS = 1 << 40
ADDRESS_MASK = (1 << ACCELERATOR_BITS) - 1
STATES = {
    "allocated": "active_allocated",
    "waiting": "active_pending_free",
    "free": "inactive",
}
ACTIONS = {
    int(Kind.ALLOC): ("alloc",),
    int(Kind.REALLOC): ("alloc",),
    int(Kind.FREE): ("free_requested", "free_completed"),
    int(Kind.DEVICE_ALLOC): ("segment_alloc",),
    int(Kind.DEVICE_FREE): ("segment_free",),
}
PAGE_ACTIONS = ACTIONS | {
    int(Kind.DEVICE_ALLOC): ("segment_map",),
    int(Kind.DEVICE_FREE): ("segment_unmap",),
}
"""Of accelerators with expandable segments."""
NEAR_BYTES = 1 << 20
"""Parts of memory that are so near to each other are one segment."""


@dataclass(frozen=True)
class Lives:
    """The objects of one device in order of birth, ``died_ns`` -1 of what is alive."""

    born_ns: Ints
    died_ns: Ints
    born_site: Ints
    died_site: Ints
    size: Ints
    address: Ints

    @cached_property
    def alive(self) -> Ints:
        """Rows of objects that are alive at the end and overlap with no other."""
        rows = np.flatnonzero(self.died_ns < 0)
        return rows[without_overlaps(self.address[rows], self.size[rows])]


def write(recording: Recording, place: Path) -> str:
    """Writes the snapshot; of more objects than ``MOST_OBJECTS`` the latest, and all survivors.

    Of a short file with more survivors than memory is meant for, the latest of these, too.
    """
    room = most_objects_in_python(recording.path.stat().st_size)
    most = min(MOST_OBJECTS, room)
    made, left_out = snapshot(recording, most, room)
    with open(place, "wb") as file:
        pickle.dump(made, file, protocol=PROTOCOL)
    if not left_out:
        return ""
    return (
        f"the snapshot has room for {most} objects and leaves {left_out} of the oldest out; choose "
        "a part of the time with --since and --until."
    )


def snapshot(
    recording: Recording, most: int = MOST_OBJECTS, most_alive: int = 2**63
) -> tuple[dict[str, Any], int]:
    """The snapshot as plain dicts, lists, texts and numbers, and how many objects it leaves out."""
    table = recording.objects
    table = table[table["size_bytes"] > 0]
    old = np.arange(len(table)) < len(table) - most
    alive = table["died_ns"].to_numpy() < 0
    left_out = old & ~alive
    if int(alive.sum()) > most_alive:
        left_out = old
    table = table[~left_out]
    stacks = Stacks(recording)
    device = table["device"].to_numpy(np.int64)
    on_accelerator = device == Device.TORCH_ACCELERATOR
    accelerators = Accelerators(recording, table[on_accelerator], stacks)
    traces, parts = accelerators.traces(), accelerators.segments()
    kinds = accelerators.names()
    for number in np.unique(device[~on_accelerator]).tolist():
        lives = lives_of(table[device == number], number >= FIRST_RUNTIME_DEVICE)
        parts += segments_of(lives, stacks, len(traces))
        traces.append(trace_of(lives, stacks, recording.created_unix_ns))
        kinds.append(DEVICE_NAMES.get(number, f"device {number}"))
    made = {
        "segments": parts,
        "device_traces": traces,
        "allocator_settings": {"tlmem_devices": ", ".join(kinds)},
        "external_annotations": annotations_of(recording),
        **accelerators.host(),
    }
    return made, int(left_out.sum())


class Accelerators:
    """The accelerators of a recording: traces and segments, each at the accelerator's own number.

    Args:
        recording: of which that is.
        table: the objects to write, those of accelerators alone.
        stacks: of the whole file.
    """

    def __init__(self, recording: Recording, table: Any, stacks: Stacks) -> None:
        self.recording, self.table, self.stacks = recording, table, stacks
        address = table["address"].to_numpy(np.uint64)
        self.number = (address >> np.uint64(ACCELERATOR_BITS)).astype(np.int64)
        events = recording.events
        chosen = events["device"].to_numpy() == Device.TORCH_ACCELERATOR
        chosen &= events["kind"].isin(list(ACTIONS)).to_numpy()
        if is_imported(recording) and recording.begin_ns is not None:
            # What is older than the trace of a snapshot is in its segments alone.
            chosen &= events["time_ns"].to_numpy() >= recording.begin_ns
        if chosen.any():
            kind = events["kind"].to_numpy()
            blocks = (kind == Kind.ALLOC) | (kind == Kind.REALLOC) | (kind == Kind.FREE)
            chosen &= ~blocks | np.isin(events["object"].to_numpy(), table.index.to_numpy())
        self.events = events[chosen]
        address = self.events["address"].to_numpy(np.uint64)
        self.event_number = (address >> np.uint64(ACCELERATOR_BITS)).astype(np.int64)
        self.state = recording.segments
        if recording.start is not None or recording.stop is not None:
            self.state = self.state[:0]  # it is that of the end
        found = {*self.number.tolist(), *self.event_number.tolist()}
        found |= set(self.state["accelerator"].tolist())
        # One may have nothing but a request for which there was no memory.
        found |= {int(key.partition(".")[2]) for key in recording.info if NUMBERED.fullmatch(key)}
        self.has_host = PINNED_HOST in found
        self.marks = recording.marks if is_imported(recording) else None
        self.count = max((number + 1 for number in found if number != PINNED_HOST), default=0)

    def names(self) -> list[str]:
        """The name of each accelerator."""
        info = self.recording.info
        kinds = [info.get(f"accelerator.{n}", "").split(" ")[0] for n in range(self.count)]
        return [f"{kind or 'accelerator'}:{n}" for n, kind in enumerate(kinds)]

    def traces(self) -> list[list[dict[str, Any]]]:
        """The trace of each accelerator."""
        return [self.trace(number) for number in range(self.count)]

    def segments(self) -> list[dict[str, Any]]:
        """The segments of all accelerators."""
        return [part for number in range(self.count) for part in self.segments_of(number, number)]

    def host(self) -> dict[str, Any]:
        """Pinned memory of the host, where a snapshot had any."""
        if not self.has_host:
            return {}
        return {
            "host_segments": self.segments_of(PINNED_HOST, 0),
            "host_traces": self.trace(PINNED_HOST),
        }

    def trace(self, number: int) -> list[dict[str, Any]]:
        """The entries of one accelerator, oldest first."""
        events = self.events[self.event_number == number]
        asked = self.asked(events["object"].to_numpy(np.int64))
        size = self.table["size_bytes"].reindex(events["object"]).to_numpy()
        size = np.where(asked > 0, asked, np.nan_to_num(size)).astype(np.int64)
        kind = events["kind"].to_numpy()
        reserves = (kind == Kind.DEVICE_ALLOC) | (kind == Kind.DEVICE_FREE)
        size = np.where(reserves, events["arg"].to_numpy(np.uint64).view(np.int64), size)
        address = events["address"].to_numpy(np.uint64) & np.uint64(ADDRESS_MASK)
        streams = self.streams(number, address)
        actions = PAGE_ACTIONS if self.has_pages(number) else ACTIONS
        made: list[dict[str, Any]] = []
        for action, at, bytes_, time_ns, site, stream in zip(
            kind.tolist(), address.tolist(), size.tolist(), events["time_ns"].tolist(),
            events["site"].tolist(), streams, strict=True,
        ):  # fmt: skip
            about = {
                "addr": at,
                "size": bytes_,
                "stream": stream,
                "time_us": (self.recording.created_unix_ns + time_ns) // 1000,
                "frames": self.stacks.of(site),
            }
            made += [{"action": name, **about} for name in actions[action]]
        return list(heapq.merge(made, self.moments(number), key=lambda each: int(each["time_us"])))

    def has_pages(self, number: int) -> bool:
        """Whether an accelerator has expandable segments, as far as its segments are known."""
        mine = self.state[self.state["accelerator"] == number]
        return bool(len(mine)) and bool(mine["expandable"].all())

    def moments(self, number: int) -> list[dict[str, Any]]:
        """Entries of an imported trace other than allocations: out of memory, and snapshots."""
        info = self.recording.info
        key = f"snapshot.{number}"
        if self.marks is None or key not in info:
            return []
        # Each accelerator has a thread of its own behind that of the annotations, in their order.
        numbers = sorted(int(each.partition(".")[2]) for each in info if NUMBERED.fullmatch(each))
        mine = self.marks[self.marks["thread"] == ANNOTATIONS_THREAD + 1 + numbers.index(number)]
        refused = [each.split(":") for each in info.get(f"oom.{number}", "").split()]
        made: list[dict[str, Any]] = []
        for label, index, time_ns, site in zip(
            *(mine[name].tolist() for name in ("label", "index", "time_ns", "site")), strict=True
        ):
            about = {
                "stream": 0,
                "time_us": (self.recording.created_unix_ns + time_ns) // 1000,
                "frames": self.stacks.of(site),
            }
            if label.startswith(OUT_OF_MEMORY) and index < len(refused):
                asked, free = map(int, refused[index])
                entry = {"action": "oom", "size": asked, **about}
                made.append(entry | ({"device_free": free - 1} if free else {}))
            elif label == SNAPSHOT_LABEL:
                made.append({"action": "snapshot", "addr": 0, "size": 0, **about})
        return made

    def asked(self, objects: Ints) -> Ints:
        """The bytes that were asked for of each object; 0 where the recording does not say."""
        requests = self.recording.requests["requested_bytes"].to_numpy(np.int64)
        known = (objects >= 0) & (objects < len(requests))
        found = np.zeros(len(objects), np.int64)
        found[known] = requests[objects[known]]
        return found

    def streams(self, number: int, address: NDArray[np.uint64]) -> list[int]:
        """The stream of the segment that each address lies in, as far as segments are known."""
        mine = self.state[self.state["accelerator"] == number].sort_values("address")
        begin = mine["address"].to_numpy(np.uint64)
        if not len(begin):
            return [0] * len(address)
        place = np.searchsorted(begin, address, side="right").astype(np.int64) - 1
        inside = place >= 0
        total = mine["total_bytes"].to_numpy(np.uint64)
        inside &= address < begin[place] + total[place]
        return list(np.where(inside, mine["stream"].to_numpy(np.int64)[place], 0).tolist())

    def segments_of(self, number: int, device: int) -> list[dict[str, Any]]:
        """The segments of one accelerator: those of the snapshot, or around all that was used."""
        mine = self.state[self.state["accelerator"] == number]
        if not len(mine):
            rows = self.table[self.number == number]
            rows = rows.assign(address=rows["address"] & np.uint64(ADDRESS_MASK))
            return segments_of(lives_of(rows, False), self.stacks, device)
        blocks = self.recording.blocks
        made = []
        for at, segment in mine.iterrows():
            parts = blocks[blocks["segment"] == at]
            made.append(
                {
                    "device": device,
                    "address": int(segment["address"]),
                    "total_size": int(segment["total_bytes"]),
                    "allocated_size": int(segment["allocated_bytes"]),
                    "active_size": int(segment["allocated_bytes"] + segment["waiting_bytes"]),
                    "requested_size": int(parts["requested_bytes"][parts["state"] != "free"].sum()),
                    "stream": int(segment["stream"]),
                    "segment_type": "small" if segment["small"] else "large",
                    "segment_pool_id": (int(segment["pool_owner"]), int(segment["pool_number"])),
                    "is_expandable": bool(segment["expandable"]),
                    "frames": self.stacks.of(int(segment["site"])),
                    "blocks": [
                        {
                            "address": address,
                            "size": size,
                            "requested_size": requested,
                            "state": STATES.get(state, "inactive"),
                            "frames": self.stacks.of(site),
                        }
                        for address, size, requested, state, site in zip(
                            *(
                                parts[name].tolist()
                                for name in (
                                    *("address", "size_bytes", "requested_bytes"),
                                    *("state", "site"),
                                )
                            ),
                            strict=True,
                        )
                    ],
                }
            )
        return made


def annotations_of(recording: Recording) -> list[dict[str, Any]]:
    """Begins and ends of the phases of an imported snapshot, in order of time."""
    phases = recording.phases
    found = []
    columns = ("label", "index", "accelerator", "begin_ns", "end_ns")
    for label, index, accelerator, begin_ns, end_ns in zip(
        *(phases[name].tolist() for name in columns), strict=True
    ):
        name = f"{label}{' ' if label.endswith('#') else ''}#{index}"
        for stage, time_ns in (("START", begin_ns), ("END", end_ns)):
            if time_ns >= 0:
                time_us = (recording.created_unix_ns + time_ns) // 1000
                found.append(
                    {"stage": stage, "name": name, "device": accelerator, "time_us": time_us}
                )
    return sorted(found, key=lambda entry: int(entry["time_us"]))


def lives_of(table: Any, has_handles: bool) -> Lives:
    """The objects of one device; those with handles instead of addresses get made-up ones."""
    columns = {
        name: table[name].to_numpy(np.int64)
        for name in ("born_ns", "died_ns", "born_site", "died_site", "size_bytes")
    }
    size = columns.pop("size_bytes")
    lives = Lives(**columns, size=size, address=table["address"].to_numpy(np.uint64).view(np.int64))
    if not has_handles:
        return lives
    is_alloc, row = in_order(lives)
    return Lives(**columns, size=size, address=made_up(is_alloc, row, size))


def in_order(lives: Lives) -> tuple[NDArray[np.bool_], Ints]:
    """Every allocation and free in order of time.

    Returns:
        For each, whether it allocates, and the row of its object. Within one nanosecond older
        objects are freed first; what was born in it is freed right after its birth.
    """
    count = len(lives.born_ns)
    freed = np.flatnonzero(lives.died_ns >= 0)
    row = np.concatenate((np.arange(count), freed))
    is_alloc = np.arange(len(row)) < count
    time = np.concatenate((lives.born_ns, lives.died_ns[freed]))
    at_once = np.concatenate((np.ones(count, bool), lives.born_ns[freed] == lives.died_ns[freed]))
    order = np.lexsort((~is_alloc, np.where(at_once, row, 0), at_once, time))
    return is_alloc[order], row[order]


def trace_of(lives: Lives, stacks: Stacks, created_unix_ns: int) -> list[dict[str, Any]]:
    """Allocations and frees, oldest first; a free is asked for and done at once."""
    is_alloc, rows = in_order(lives)
    made: list[dict[str, Any]] = []
    columns = (lives.address, lives.size, lives.born_ns, lives.died_ns, lives.born_site,
               lives.died_site)  # fmt: skip
    values = [column.tolist() for column in columns]
    for allocates, row in zip(is_alloc.tolist(), rows.tolist(), strict=True):
        address, size, born_ns, died_ns, born_site, died_site = (column[row] for column in values)
        about = {
            "addr": address,
            "size": size,
            "stream": 0,
            "time_us": (created_unix_ns + (born_ns if allocates else died_ns)) // 1000,
            "frames": stacks.of(born_site if allocates else died_site),
        }
        if allocates:
            made.append({"action": "alloc", **about})
        else:
            made.append({"action": "free_requested", **about})
            made.append({"action": "free_completed", **about})
    return made


def segments_of(lives: Lives, stacks: Stacks, device: int) -> list[dict[str, Any]]:
    """Memory at the end: blocks that are alive, and the room between them, without gaps."""
    alive = lives.alive[np.argsort(lives.address[lives.alive], kind="stable")]
    begins = lives.address[alive]
    made = []
    for begin, end in segments(lives.address, lives.size):
        inside = alive[slice(*np.searchsorted(begins, [begin, end]))]
        blocks: list[dict[str, Any]] = []
        at = begin
        for address, size, site in zip(
            lives.address[inside].tolist(), lives.size[inside].tolist(),
            lives.born_site[inside].tolist(), strict=True,
        ):  # fmt: skip
            if address > at:
                blocks.append(block(at, address - at, "inactive", []))
            blocks.append(block(address, size, "active_allocated", stacks.of(site)))
            at = address + size
        if end > at:
            blocks.append(block(at, end - at, "inactive", []))
        held = int(lives.size[inside].sum())
        made.append(
            {
                "device": device,
                "address": begin,
                "total_size": end - begin,
                "allocated_size": held,
                "active_size": held,
                "requested_size": held,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": blocks,
            }
        )
    return made


def block(address: int, size: int, state: str, frames: list[dict[str, Any]]) -> dict[str, Any]:
    """A part of a segment."""
    asked = size if state != "inactive" else 0
    return {
        "address": address,
        "size": size,
        "requested_size": asked,
        "state": state,
        "frames": frames,
    }


class Stacks:
    """Stacks as the viewer wants them, innermost first; equal ones are one object in the file.

    When all together have ``MOST_FRAMES``, of each further one the innermost frames are shown.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._known: dict[int, list[dict[str, Any]]] = {}
        self._frames: dict[tuple[str, int, str], dict[str, Any]] = {}
        self._room = MOST_FRAMES

    def of(self, site: int) -> list[dict[str, Any]]:
        """The frames of a site."""
        frames = self._known.get(site)
        if frames is None:
            most = MOST_STACK_DEPTH if self._room > 0 else INNERMOST
            stack = itertools.islice(self.recording.frames_of(site), most)
            frames = self._known[site] = [self._frame(*frame) for frame in stack]
            self._room -= len(frames)
        return frames

    def _frame(self, file: str, line: int, function: str) -> dict[str, Any]:
        made = {"filename": file or "??", "line": line, "name": function or "??"}
        return self._frames.setdefault((file, line, function), made)


def made_up(is_alloc: NDArray[np.bool_], row: Ints, size: Ints) -> Ints:
    """Addresses for objects without any, such that no two that live together overlap.

    Freed room is used again by the next object of its size, the latest first.

    Args:
        is_alloc: of each event in order of time, whether it allocates; else it frees.
        row: of each event, the row of its object.
        size: of each object, its bytes, more than 0.
    Returns:
        An address for each object, 0 for one without an event.
    """
    address = np.zeros(len(size), np.int64)
    free: dict[int, list[int]] = defaultdict(list)
    top = FIRST_ADDRESS
    grains = (size + GRAIN_BYTES - 1) // GRAIN_BYTES * GRAIN_BYTES
    for allocates, number in zip(is_alloc.tolist(), row.tolist(), strict=True):
        room = int(grains[number])
        if not allocates:
            free[room].append(int(address[number]))
        elif free[room]:
            address[number] = free[room].pop()
        else:
            address[number] = top
            top += room
    return address


def segments(address: Ints, size: Ints) -> list[tuple[int, int]]:
    """Begin and end of the segments around blocks of memory that may overlap, in order."""
    if len(address) == 0:
        return []
    order = np.argsort(address, kind="stable")
    begin, end = address[order], np.maximum.accumulate((address + size)[order])
    first = np.flatnonzero(begin[1:] > end[:-1] + NEAR_BYTES) + 1
    starts = np.concatenate(([0], first))
    stops = np.concatenate((first, [len(begin)])) - 1
    return list(zip(begin[starts].tolist(), end[stops].tolist(), strict=True))


def without_overlaps(address: Ints, size: Ints) -> NDArray[np.bool_]:
    """Which blocks to keep so that none overlap: of two that do, the one that came later.

    Two live blocks overlap only when the free of the first one was not recorded.
    """
    keep = np.ones(len(address), bool)
    order = np.argsort(address, kind="stable")
    last = -1
    for number in order.tolist():
        if last >= 0 and address[number] < address[last] + size[last]:
            loser = min(number, last)
            keep[loser] = False
            if loser == number:
                continue
        last = number
    return keep
