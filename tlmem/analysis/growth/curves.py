"""Whatever can grow is a curve: its level at moments of the run.

Covers: curves of the process's memory from samples, as they are judged, drawn, compared with
budgets and counted per mark. Does not cover: curves of objects, which ``lifetimes.alive_at``
counts; whether a curve grows (``process_growth``, ``growing_sites``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.rules import RULES, Rule

Floats = NDArray[np.float64]
LONGEST_IMPORT_S = 1.0
"""No longer time between two rises of the number of modules is that of one module."""
LONGEST_START_S = 30.0
"""A program that imports for longer, and most of the time, is not just starting."""
ARENA_GRAIN = 1 << 18
"""Python's arenas have so many bytes or a multiple of them."""
ALLOCATOR_BYTES = 16
"""What the C allocator adds to each block for itself, on average."""


class Window:
    """The samples between two moments, each metric carried on to where it was not taken."""

    def __init__(self, samples: pd.DataFrame, begin_ns: int, end_ns: int) -> None:
        inside = (samples["time_ns"] >= begin_ns) & (samples["time_ns"] <= end_ns)
        self.samples = samples[inside]
        self.time_ns = self.samples["time_ns"].to_numpy(np.int64)
        self._metrics: dict[str, tuple[NDArray[np.bool_], Floats]] = {}

    def taken(self, name: str) -> NDArray[np.bool_]:
        """Which samples have a metric."""
        return self._metric(name)[0]

    def bytes(self, name: str) -> Floats:
        """A metric in every sample: its last known value, 0 when it was never taken."""
        return self._metric(name)[1]

    def _metric(self, name: str) -> tuple[NDArray[np.bool_], Floats]:
        """Which samples have a metric, and its value in every sample; looked up once."""
        found = self._metrics.get(name)
        if found is None:
            values = np.full(len(self.samples), np.nan)
            if name in self.samples:
                values = self.samples[name].to_numpy(np.float64, na_value=np.nan)
            taken = ~np.isnan(values)
            rows = np.flatnonzero(taken)
            if len(rows):
                latest = np.maximum.accumulate(np.where(taken, np.arange(len(taken)), rows[0]))
                values = values[latest]
            else:
                values = np.zeros(len(values))
            found = self._metrics[name] = taken, values
        return found

    @cached_property
    def importing(self) -> NDArray[np.bool_]:
        """Which samples ended a time in which Python imported modules.

        Their number is looked at in each full sample; what was sampled since the one before counts.
        It rises when a module begins: a large one is compiled and run for some samples more, and
        what compiling took is freed during the next. So a short time between two rises counts too.
        A program that imports for most of a long run makes modules, and keeps them.
        """
        looked = np.flatnonzero(self.taken("python_arena"))
        if len(looked) == 0:
            return np.zeros(len(self.samples), bool)
        rose = np.diff(self.bytes("modules")[looked], prepend=np.inf) > 0
        begun, whole_ns = np.flatnonzero(rose), self.time_ns[-1] - self.time_ns[0]
        longest_ns = min(RULES.brief * whole_ns, LONGEST_IMPORT_S * 1e9)
        short = np.diff(self.time_ns[looked][begun]) <= longest_ns
        for first, last in zip(begun[:-1][short], begun[1:][short], strict=True):
            rose[first:last] = True
        following = np.searchsorted(looked, np.arange(len(self.samples)))
        found = rose[np.minimum(following, len(rose) - 1)]
        imported_ns = np.diff(self.time_ns, prepend=self.time_ns[0])[found].sum()
        if imported_ns > max(RULES.majority * whole_ns, LONGEST_START_S * 1e9):
            return np.zeros(len(self.samples), bool)
        return found

    def without_imports(self, values: Floats) -> Floats:
        """A curve without its changes while modules were imported."""
        steps = np.diff(values, prepend=values[:1])
        return values[:1] + np.cumsum(np.where(self.importing, 0.0, steps))


def handed_out_bytes(window: Window) -> Floats:
    """Bytes that the C allocator has handed out to arrays, to the device ``cpu`` and to Python."""
    arrays = window.bytes("tracked") - window.bytes("device_objects")
    return arrays + window.bytes("device_host") + window.bytes("python_large")


def native_bytes(window: Window) -> Floats:
    """Bytes that the C allocator has handed out to none of these, nor keeps in quarantine."""
    blocks = window.bytes("tracked_count") + window.bytes("device_host_count")
    overhead = ALLOCATOR_BYTES * blocks + window.bytes("quarantine")
    return window.bytes("malloc_used") - handed_out_bytes(window) - overhead


def excess_bytes(window: Window) -> Floats:
    """Bytes that devices hold beyond the most that live objects ever used at once.

    A pool that has served a peak keeps its level and may be used again; what rises above that
    level was not.
    """
    used = window.bytes("device_objects")
    return window.bytes("device_unused") + used - np.maximum.accumulate(used)


def python_bytes(window: Window) -> Floats:
    """Bytes of Python's own heap: arenas of small objects and everything larger."""
    return window.bytes("python_arena") + window.bytes("python_large")


def in_whole_arenas(window: Window) -> bool:
    """Whether Python's arenas count as a whole, as in recordings of earlier versions."""
    rows = window.taken("python_arena")
    changes = np.diff(window.bytes("python_arena")[rows])
    return not (changes % ARENA_GRAIN != 0).any()


def small_objects(window: Window) -> Floats:
    """Python's heap without large blocks: a table that doubles now and then hides what it holds."""
    return window.bytes("python_arena")


def large_objects(window: Window) -> Floats:
    """Python's heap without arenas: one that is taken in the middle hides how large blocks rise."""
    return window.bytes("python_large")


def outside_bytes(window: Window) -> Floats:
    """Resident bytes that even fully touched arrays, Python and free allocator memory cannot
    explain.

    Arrays are touched little by little after they are made, so only what rises above the level
    before the first arrays counts.
    """
    rest = window.bytes("anon") - window.bytes("recorder") - python_bytes(window)
    rest = rest - window.bytes("malloc_free") - window.bytes("device_unused")
    base = rest[0] if len(rest) else 0.0
    return np.maximum(rest - window.bytes("tracked") - freed_since_asked(window), base)


def freed_since_asked(window: Window) -> Floats:
    """Bytes of arrays freed since the C allocator last said what it has free, and still resident.

    What the process gave back, and what later arrays filled again, no longer counts.
    """
    tracked = np.diff(window.bytes("tracked"), prepend=0.0)
    resident = np.diff(resident_bytes(window), prepend=0.0)
    change = np.minimum(resident, np.maximum(tracked, 0.0)) - tracked
    asked = window.taken("malloc_free")
    kept = np.zeros(len(change))
    starts = np.flatnonzero(asked).tolist()
    for first, end in zip([0, *starts], [*starts, len(change)], strict=True):
        level = np.cumsum(np.append(0.0, change[first + 1 : end]))[: end - first]
        kept[first:end] = level - np.minimum.accumulate(level)
    return kept


@dataclass(frozen=True)
class Curve:
    """The level of one kind of memory in each sample.

    Attributes:
        kind: what grows when it rises: ``native``, ``shared``, ``python``, ``driver``, ``tape`` or
            another.
        subject: what it is called in ``--explain``.
        time_ns, values: of each sample; values are bytes.
        taken: which samples looked at it; in the others it is the last known value.
        least: what a healthy process drifts by.
    """

    kind: str
    subject: str
    time_ns: NDArray[np.int64]
    values: Floats
    taken: NDArray[np.bool_]
    least: Rule


def shared_bytes(window: Window) -> Floats:
    """Resident shared memory: what the kernel tells often, without files as it told them last.

    Programs, libraries and files change little from one list of mappings to the next.
    """
    listed = window.taken("shared")
    if not listed.any():
        return np.zeros(len(window.time_ns))
    both = window.bytes("file")
    files = (both - window.bytes("shared"))[listed]
    return np.maximum(both - np.interp(window.time_ns, window.time_ns[listed], files), 0.0)


def resident_bytes(window: Window) -> Floats:
    """Anonymous resident memory without the recorder's."""
    return window.bytes("anon") - window.bytes("recorder")


MEMORY: dict[str, tuple[str, str, str, Callable[[Window], Floats], str]] = {
    "tapes": ("tape", "tapes", "tapes", lambda window: window.bytes("tapes"), "heap_bytes"),
    "native": ("native", "native memory", "malloc_used", native_bytes, "native_bytes"),
    "python": ("python", "Python's heap", "python_arena", python_bytes, "heap_bytes"),
    "small": ("python", "Python's small objects", "python_arena", small_objects, "heap_bytes"),
    "large": ("python", "Python's large blocks", "python_arena", large_objects, "heap_bytes"),
    "outside": ("native", "unexplained resident memory", "anon", outside_bytes, "resident_bytes"),
    "shared": ("shared", "shared memory", "file", shared_bytes, "native_bytes"),
    "device": ("driver", "unused memory of devices", "device_unused", excess_bytes, "heap_bytes"),
    "resident": ("resident", "resident memory", "anon", resident_bytes, "resident_bytes"),
    "recorder": (
        "recorder",
        "memory of the recorder",
        "anon",
        lambda window: window.bytes("recorder"),
        "heap_bytes",
    ),
}
"""Each kind of memory: what grows, its name, the metric that is sampled, its bytes, the rule."""


def memory_curve(window: Window, name: str) -> Curve:
    """One kind of memory, of those in ``MEMORY``, in the samples of a window."""
    kind, subject, metric, values, rule = MEMORY[name]
    least: Rule = getattr(RULES, rule)
    return Curve(kind, subject, window.time_ns, values(window), window.taken(metric), least)
