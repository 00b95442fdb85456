"""The simulator of the C core as objects: a run of a trace under settings.

Covers: running, what was reserved after each event, the state at an event, what the driver gave and
took. Does not cover: what is asked of it (``answers``, ``proof``, ``stranded``).
See also: ``native/include/tlmem_replay.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlmem import _native
from tlmem.errors import TlmemError
from tlmem.replaying.settings import MIB, Settings
from tlmem.replaying.trace import Recorded, Trace

STEP_DTYPE = np.dtype([("reserved", "<u8"), ("address", "<u8"), ("bytes", "<u8")])
PART_DTYPE = np.dtype(
    [
        ("segment", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("requested", "<u8"),
        ("block", "<u4"),
        ("lane", "<u2"),
        ("small", "u1"),
        ("expandable", "u1"),
    ]
)
CHANGE_DTYPE = np.dtype(
    [("event", "<u8"), ("address", "<u8"), ("bytes", "<u8"), ("lane", "<u4"), ("given", "<u4")]
)
LANE_DTYPE = np.dtype([("pool", "<u4"), ("flags", "<u4")])
NEVER_EXPANDS = 1
FREE_PART = 2**32 - 1
BEFORE = 2**64 - 1
"""Number of the event of what was there before the first one."""
EVENTS_AT_ONCE = 200_000
"""Between so many events an interrupt is heard."""
GRAIN, SMALL, SMALL_SEGMENT, OWN_SEGMENT = 512, MIB, 2 * MIB, 10 * MIB


class Contradiction(TlmemError):
    """The events of a trace contradict each other, or its start."""

    exit_code = 3


@dataclass(frozen=True)
class Figures:
    """What is known after a run; bytes and counts. ``failed_bytes`` is 0 when all events were done.

    ``peak_event`` is the event after which most was reserved, -1: before the first.
    """

    reserved_bytes: int
    allocated_bytes: int
    requested_bytes: int
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    peak_requested_bytes: int
    peak_event: int
    events: int
    segments: int
    driver_allocs: int
    driver_frees: int
    retries: int
    collections: int
    failed_bytes: int
    largest_free_bytes: int

    @property
    def completes(self) -> bool:
        """Whether the device was large enough."""
        return self.failed_bytes == 0


def figures_of(looked: Any) -> Figures:
    """The figures of the C core."""
    names = Figures.__dataclass_fields__
    values = {name: int(getattr(looked, name)) for name in names}
    if values["peak_event"] == BEFORE:
        values["peak_event"] = -1
    return Figures(**values)


class Simulator:
    """One replay under settings.

    ``misfits`` are segments at the start that contradict others, ``missing`` blocks that lie in
    them: nothing may be said of these.

    Raises:
        MemoryError: no memory for it.
        Contradiction: settings, start or events that cannot be.
    """

    def __init__(
        self,
        settings: Settings,
        trace: Trace,
        recorded: Recorded | None = None,
        keeps_log: bool = False,
    ) -> None:
        ffi, lib = _native.ffi, _native.lib
        given = ffi.new("tlm_sim_settings *")
        given.capacity_bytes = settings.capacity_bytes
        given.allowed_bytes = settings.allowed_bytes
        given.max_split_bytes = settings.max_split_size_mb * MIB
        given.max_rounding_bytes = settings.max_non_split_rounding_mb * MIB
        given.grain_bytes, given.small_bytes = GRAIN, SMALL
        given.small_segment_bytes = SMALL_SEGMENT
        given.large_segment_bytes = settings.large_segment_size_mb * MIB
        given.own_segment_bytes, given.round_bytes = OWN_SEGMENT, 2 * MIB
        given.collect_above = settings.garbage_collection_threshold
        given.divisions = list(settings.divisions)
        given.expandable = settings.expandable_segments
        given.keeps_log = keeps_log
        out = ffi.new("tlm_sim **")
        lanes = np.zeros(len(trace.lanes), LANE_DTYPE)
        lanes["pool"], lanes["flags"] = trace.pools, np.where(trace.plain, NEVER_EXPANDS, 0)
        self._check(
            lib.tlm_sim_create(
                given, trace.blocks, len(lanes), ffi.from_buffer("tlm_sim_lane[]", lanes), out
            ),
            "the settings",
        )
        self.replay = ffi.gc(out[0], lib.tlm_sim_destroy)
        self.trace = trace
        self.misfits = 0
        self.missing: set[int] = set()
        if recorded is not None:
            self._start(recorded)

    def _start(self, recorded: Recorded) -> None:
        """What was there before the first event; what contradicts the rest of it is left out."""
        lib = _native.lib
        for segment in recorded.segments:
            status = lib.tlm_sim_segment(
                self.replay,
                segment.address,
                segment.bytes,
                segment.lane,
                segment.small,
                segment.expandable,
            )
            if status == lib.TLM_BAD_ARGUMENT:
                self.misfits += 1
            else:
                self._check(status, f"the segment at {segment.address:#x}")
        for block in recorded.blocks:
            status = lib.tlm_sim_place(
                self.replay, block.block, block.address, block.bytes, block.requested
            )
            if status == lib.TLM_BAD_ARGUMENT:
                self.missing.add(block.block)
            else:
                self._check(status, f"the block at {block.address:#x}")
        places = np.ascontiguousarray(recorded.places, np.uint64)
        if len(places):
            given = _native.ffi.from_buffer("tlm_sim_range[]", places)
            self._check(lib.tlm_sim_addresses(self.replay, given, len(places)), "the segments")

    @staticmethod
    def _check(status: int, what: str) -> None:
        lib = _native.lib
        if status == lib.TLM_NO_MEMORY:
            raise MemoryError("no memory for the replay")
        if status != lib.TLM_OK:
            raise Contradiction(f"{what} cannot be replayed: it contradicts what came before it.")

    def run(self, events: np.ndarray, with_steps: bool = False) -> np.ndarray | None:
        """Replays events until the last one or until the device is too small.

        Args:
            with_steps: whether what was reserved after each event is returned, and for
                allocations where the block lies; rows of ``STEP_DTYPE``.
        Raises:
            MemoryError, Contradiction.
        """
        ffi, lib = _native.ffi, _native.lib
        events = np.ascontiguousarray(events)
        steps = np.zeros(len(events), STEP_DTYPE) if with_steps else None
        for first in range(0, len(events), EVENTS_AT_ONCE):
            part = events[first : first + EVENTS_AT_ONCE]
            given = ffi.from_buffer("tlm_sim_event[]", part)
            out = ffi.NULL
            if steps is not None:
                out = ffi.from_buffer("tlm_sim_step[]", steps[first : first + len(part)])
            status = lib.tlm_sim_run(self.replay, given, len(part), out)
            if status == lib.TLM_OUT_OF_MEMORY:
                return steps
            self._check(status, "the trace")
        return steps

    def figures(self) -> Figures:
        """What is known by now."""
        looked = _native.ffi.new("tlm_sim_figures *")
        _native.lib.tlm_sim_look(self.replay, looked)
        return figures_of(looked)

    def parts(self) -> np.ndarray:
        """The parts of all segments by address, rows of ``PART_DTYPE``."""
        ffi, lib = _native.ffi, _native.lib
        parts = np.zeros(lib.tlm_sim_parts(self.replay, ffi.NULL, 0), PART_DTYPE)
        if len(parts):
            lib.tlm_sim_parts(self.replay, ffi.from_buffer("tlm_sim_part[]", parts), len(parts))
        return parts

    def changes(self) -> np.ndarray:
        """What the driver gave and took, rows of ``CHANGE_DTYPE``, if that is kept."""
        ffi, lib = _native.ffi, _native.lib
        changes = np.zeros(lib.tlm_sim_log(self.replay, ffi.NULL, 0), CHANGE_DTYPE)
        if len(changes):
            lib.tlm_sim_log(self.replay, ffi.from_buffer("tlm_sim_change[]", changes), len(changes))
        return changes

    def broken_rule(self) -> int:
        """0 when the state is sound; for tests."""
        return int(_native.lib.tlm_sim_check(self.replay))


def run(trace: Trace, settings: Settings, events: NDArray[np.void] | None = None) -> Figures:
    """The figures after all events of a trace under settings, from an empty device."""
    simulator = Simulator(settings, trace)
    simulator.run(trace.events if events is None else events)
    return simulator.figures()
