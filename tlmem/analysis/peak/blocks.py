"""The objects of a recording on the clock of its events, each with its memory and its phases.

Covers: when each object was allocated and freed, as positions in the table of events, so that no
two of these are the same; the memory that an object lies in; the phases of both of its ends.
Does not cover: roles (``roles``), module paths (``modules``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER, is_imported
from tlmem.analysis.peak.phases import Phase, engine_threads, site_phases
from tlmem.events import DEVICE_NAMES, RESIZE_FAILED, Device, Kind

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording
    from tlmem.recording.tables.object_events import EventClock

HOST = "host"
HOST_DEVICES = (Device.NUMPY, Device.TORCH, Device.PROBE, Device.CPU)
"""Memory of these comes from one place, the process's own heap."""
TORCH_DEVICES = (Device.TORCH, Device.TORCH_MAPPED, Device.TORCH_ACCELERATOR)
ACCELERATOR_BITS = 56
"""Bits of an address below the number of the accelerator."""

_PART = 1 << 18
"""Objects that are counted together."""
_LABELS = frozenset((Kind.MODULE_PATH, Kind.AUTOGRAD))
"""Kinds of events of which ``labels_after`` is asked."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Blocks:
    """Objects that have bytes of their own, in order of their numbers.

    ``born`` and ``died`` are positions in the table of events (``NEVER``: it is alive at the end),
    -1 is before its first one; ``born_ns`` is a time. ``memory`` is the place of
    each one's memory in ``memories``. ``size`` is in bytes, times the number of objects that a row
    stands for where a size limit thinned their list (``thinned``). ``asked`` is what the program
    asked for, where the block of a caching allocator may be larger. ``time_ns`` is of each event,
    ``mark_events`` are those that are marks, ``kinds`` the kinds that there are. ``begin`` is the
    first event that the trace of a snapshot saw: when older objects were made is unknown.
    ``snapshot`` says that it is one, which ends wherever the program was.
    """

    number: Ints
    device: NDArray[np.uint8]
    memory: Ints
    memories: tuple[str, ...]
    size: Ints
    asked: Ints
    born: Ints
    died: Ints
    born_ns: Ints
    born_site: Ints
    died_site: Ints
    born_thread: Ints
    died_thread: Ints
    born_phase: NDArray[np.int8]
    died_phase: NDArray[np.int8]
    born_in_backward: Mask
    died_in_backward: Mask
    time_ns: Ints
    mark_events: Ints
    kinds: frozenset[int]
    sealed: bool
    thinned: bool
    begin: int = 0
    snapshot: bool = False

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def torch(self) -> Mask:
        """Which ones are PyTorch's."""
        return np.isin(self.device, TORCH_DEVICES)

    @cached_property
    def peaks(self) -> tuple[tuple[int, int], ...]:
        """The highest level of each memory in bytes, and the first event at which it was there."""
        found = []
        for number in range(len(self.memories)):
            is_mine = self.memory == number
            mine = slice(None) if is_mine.all() else is_mine
            curve = Curve.of(self.size[mine], self.born[mine], self.died[mine])
            found.append(curve.highest)
        return tuple(found)

    @cached_property
    def by_peak(self) -> list[int]:
        """The numbers of the memories, the one with the highest peak first."""
        return sorted(range(len(self.memories)), key=lambda n: (-self.peaks[n][0], n))

    def alive(self, event: int) -> Mask:
        """Which ones are alive just after an event."""
        return (self.born <= event) & (event < self.died)

    def event_before(self, time_ns: int) -> int:
        """The last event up to a time; -1 when there was none."""
        return int(np.searchsorted(self.time_ns, time_ns, side="right")) - 1

    def time_of(self, event: int) -> int:
        """When an event was, in ns since the start."""
        return int(self.time_ns[event]) if 0 <= event < len(self.time_ns) else 0


@dataclass(frozen=True)
class Curve:
    """Bytes that are alive just after each event that changes them; ``at`` is ascending."""

    at: Ints
    level: Floats

    @classmethod
    def of(cls, size: Ints, born: Ints, died: Ints) -> Curve:
        """The level of some objects."""
        at = np.concatenate((born, died[died < NEVER]))
        at.sort()
        level = np.zeros(len(at) + 1)
        # In place and in parts: what a sum by moments makes of millions of objects is as large.
        for start in range(0, len(size), _PART):
            some = slice(start, start + _PART)
            np.add.at(level, np.searchsorted(at, born[some], side="left"), size[some])
            np.subtract.at(level, np.searchsorted(at, died[some], side="left"), size[some])
        level = level[:-1]
        return cls(at, np.cumsum(level, out=level))

    @property
    def highest(self) -> tuple[int, int]:
        """The highest level in bytes and the first event at which it was reached; (0, -1): none."""
        if len(self.at) == 0:
            return 0, -1
        row = int(self.level.argmax())
        return int(self.level[row]), int(self.at[row])

    def changed(self, begin: Ints, end: Ints, size: Floats) -> Curve:
        """The same with amounts added from ``begin`` until just before ``end``; below 0: less."""
        change = np.zeros(len(self.at) + 1)
        for moment, sign in ((begin, 1.0), (end, -1.0)):
            rows = np.searchsorted(self.at, moment, side="left")
            change += sign * np.bincount(rows, weights=size, minlength=len(change))
        return Curve(self.at, self.level + np.cumsum(change[:-1]))


def blocks_of(recording: Recording, release_events: bool = False) -> Blocks:
    """Every object of a recording that has bytes of its own, on the clock of events.

    Args:
        release_events: give their memory back where nothing else here needs them.
    """
    clock = recording.event_clock()
    if release_events and not clock.kinds & _LABELS:
        recording.release_events()
    table = recording.objects
    died_ns = table["died_ns"].to_numpy(np.int64)
    time_ns = recording.times_ns(clock.ticks)
    born, died = _positions(recording, clock, died_ns, time_ns)
    device = table["device"].to_numpy(np.uint8)
    size = table["size_bytes"].to_numpy(np.int64)
    stride = int((recording.fold or {}).get("live_stride", 1) or 1)
    if stride > 1:
        size = np.where(table["folded"].to_numpy(bool), size * stride, size)
    memories, memory = _memories(recording, device, size)
    # The table is as the recording has it; what follows is only of the chosen rows.
    chosen = memory >= 0
    rows: slice | Ints = slice(None) if chosen.all() else np.flatnonzero(chosen)
    died = died[rows]
    site = table["born_site"].to_numpy()[rows]
    died_site = table["died_site"].to_numpy()[rows]
    thread = table["born_thread"].to_numpy()[rows]
    died_thread = table["died_thread"].to_numpy()[rows]
    phases = site_phases(recording.sites)
    engine = engine_threads(recording.threads)
    born_phase, born_within = _with_threads(*phases.of(site), np.isin(thread, engine))
    died_phase, died_within = _with_threads(*phases.of(died_site), np.isin(died_thread, engine))
    died_phase = np.where(died == NEVER, np.int8(Phase.NEVER), died_phase)
    return Blocks(
        number=table.index.to_numpy(np.int64)[rows],
        device=device[rows],
        memory=memory[rows],
        memories=memories,
        size=size[rows],
        asked=_asked(recording, size)[rows],
        born=born[rows],
        died=died,
        born_ns=table["born_ns"].to_numpy(np.int64)[rows],
        born_site=site,
        died_site=died_site,
        born_thread=thread,
        died_thread=died_thread,
        born_phase=born_phase,
        died_phase=died_phase,
        born_in_backward=born_within,
        died_in_backward=died_within & (died < NEVER),
        time_ns=time_ns,
        mark_events=clock.marks,
        kinds=clock.kinds,
        sealed=recording.sealed,
        thinned=stride > 1,
        begin=_begin_of_trace(recording, time_ns),
        snapshot=is_imported(recording),
    )


def _asked(recording: Recording, size: Ints) -> Ints:
    """What was asked for in each allocation: more than that is in a block for lack of a smaller."""
    if not is_imported(recording):
        return size
    requests = recording.requests
    asked = size.copy()
    place = _places_in(recording.objects.index.to_numpy(np.int64), requests.index.to_numpy())
    asked[place[place >= 0]] = requests["requested_bytes"].to_numpy(np.int64)[place >= 0]
    return asked


def _begin_of_trace(recording: Recording, time_ns: Ints) -> int:
    if not is_imported(recording) or recording.begin_ns is None:
        return 0
    return int(np.searchsorted(time_ns, recording.begin_ns))


def _memories(
    recording: Recording, device: NDArray[np.uint8], size: Ints
) -> tuple[tuple[str, ...], Ints]:
    """The memories in which there are bytes, by name, and the place of each object's; -1: none."""
    if (device == Device.TORCH_ACCELERATOR).any():
        address = recording.objects["address"].to_numpy(np.uint64)
        names = memory_names(device, address, recording.info)
        chosen = (size > 0) & (names != "")
        memories, found = np.unique(names[chosen].astype(str), return_inverse=True)
        memory = np.full(len(device), -1, np.int64)
        memory[chosen] = found
        return tuple(memories.tolist()), memory
    there = np.unique(device[size > 0])
    of_device = memory_names(there, np.empty(0, np.uint64), {}).tolist()
    every = sorted({*of_device} - {""})
    place = np.full(256, -1, np.int8)
    place[there] = [every.index(name) if name else -1 for name in of_device]
    return tuple(every), np.where(size > 0, place[device], np.int8(-1))


def memory_names(
    device: NDArray[np.uint8], address: NDArray[np.uint64], notes: dict[str, str]
) -> NDArray[np.object_]:
    """The memory of each object: ``host``, a device's name, ``cuda:0``; empty: not counted.

    Args:
        device, address: of each object.
        notes: those of the recording; ``accelerator.N`` is what the accelerator N is.
    """
    names = np.full(256, "", object)
    for number in range(1, 256):
        names[number] = DEVICE_NAMES.get(number, f"device {number}")
    names[list(HOST_DEVICES)] = HOST
    names[Device.FOREIGN] = ""
    found = names[device]
    apart = np.flatnonzero(device == Device.TORCH_ACCELERATOR)
    index = (address[apart] >> np.uint64(ACCELERATOR_BITS)).astype(np.int64)
    for number in np.unique(index).tolist():
        kind = notes.get(f"accelerator.{number}", "").split(" ")[0] or "accelerator"
        found[apart[index == number]] = f"{kind}:{number}"
    return found


def _positions(
    recording: Recording, clock: EventClock, died_ns: Ints, time_ns: Ints
) -> tuple[Ints, Ints]:
    """Where in the table of events each object begins and ends; -1 before it, ``NEVER`` alive."""
    born, died = clock.born.astype(np.int64), clock.died.astype(np.int64)
    died[died < 0] = NEVER
    unsure = clock.unsure[died_ns[clock.unsure] >= 0]
    known = np.flatnonzero(died[unsure] < NEVER)
    clear = np.zeros(len(unsure), bool)
    clear[known] = time_ns[died[unsure[known]]] == died_ns[unsure[known]]
    lost = unsure[~clear]
    if len(lost):
        died[lost] = _replaced(recording, born, lost, died_ns[lost], np.append(time_ns, NEVER))
    died[died_ns < 0] = NEVER
    return born, died


def _replaced(recording: Recording, born: Ints, lost: Ints, died_ns: Ints, time_ns: Ints) -> Ints:
    """Where objects end whose address was allocated again without a free: there."""
    device = recording.objects["device"].to_numpy(np.uint8)
    address = recording.objects["address"].to_numpy(np.uint64)
    order = np.lexsort((born, address, device))
    same = (device[order][1:] == device[order][:-1]) & (address[order][1:] == address[order][:-1])
    after = np.full(len(born), -1, np.int64)
    after[order[:-1][same]] = born[order[1:][same]]
    by_time = np.searchsorted(time_ns, died_ns, side="left")
    return np.where(after[lost] >= 0, after[lost], by_time)


def _places_in(number: Ints, wanted: Ints) -> Ints:
    """The place of each wanted number among ascending ones; -1 for what is not there."""
    if len(number) == 0:
        return np.full(len(wanted), -1, np.int64)
    if int(number[-1]) - int(number[0]) == len(number) - 1:
        place = wanted - int(number[0])
        return np.where((place >= 0) & (place < len(number)), place, -1)
    place = np.searchsorted(number, wanted).clip(max=len(number) - 1)
    return np.where(number[place] == wanted, place, -1)


def _with_threads(
    phase: NDArray[np.int8], within: Mask, engine: Mask
) -> tuple[NDArray[np.int8], Mask]:
    """Phases of events, of which some are in threads of the engine that have no Python frames."""
    phase = np.where(engine & (phase == Phase.USER), np.int8(Phase.BACKWARD), phase)
    phase = np.where(engine & (phase == Phase.FORWARD), np.int8(Phase.RECOMPUTED), phase)
    return phase, within | engine


def labels_after(
    recording: Recording, blocks: Blocks, kind: Kind
) -> tuple[Ints, NDArray[np.uint64], Ints]:
    """What events of a kind say of the block that the same thread allocated just before.

    Returns:
        The numbers of the objects, the argument of each event, and its thread.
    """
    if kind not in blocks.kinds:
        return np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    events = recording.events
    kinds = events["kind"].to_numpy(np.uint8)
    chosen = np.isin(kinds, (Kind.ALLOC, Kind.REALLOC, kind))
    rows = np.flatnonzero(chosen)
    thread = events["thread"].to_numpy(np.int64)[rows]
    rows = rows[np.argsort(thread, kind="stable")]
    thread = np.sort(thread, kind="stable")
    address = events["address"].to_numpy(np.uint64)[rows]
    arg = events["arg"].to_numpy(np.uint64)[rows]
    begins = (kinds[rows] != kind) & (arg != np.uint64(RESIZE_FAILED))
    last = np.maximum.accumulate(np.where(begins, np.arange(len(rows)), -1))
    said = np.flatnonzero((kinds[rows] == kind) & (last >= 0))
    of = last[said]
    fits = (address[of] == address[said]) & (thread[of] == thread[said])
    objects = events["object"].to_numpy(np.int64)[rows[of[fits]]]
    return objects, arg[said[fits]], thread[said[fits]]


def numbers_in(blocks: Blocks, objects: Sequence[int] | Ints) -> Ints:
    """The place of each object in ``blocks``; -1 for what is not there."""
    return _places_in(blocks.number, np.asarray(objects, np.int64))
