"""Where resident memory is, as parts that add up: when judged, at its peak, and what it grew by.

Covers: the parts at single moments, from samples in which every part was taken, and their
differences. Does not cover: whether it grows; see ``growth.process_growth``. What mappings are
whose; see ``mappings``.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.growth.curves import Window, handed_out_bytes
from tlmem.analysis.growth.process_growth import UNWINDING_FROM
from tlmem.analysis.memory.mappings import mapping_snapshots
from tlmem.analysis.model import Attribution, Change, Peak
from tlmem.analysis.rules import RULES

NEAR_PEAK = 0.95
"""A mapping snapshot that shows so much of the peak shows the peak."""
DISTURBED_BYTES = 1_500_000
"""A residual from which on a mapping snapshot may have been disturbed."""
SAME_SHARE = 0.02
"""Of resident memory: so much may change from the moment of judging to the mapping snapshot
after it."""


def attribute(samples: pd.DataFrame, judged_ns: int) -> Attribution:
    """The parts of resident memory at the last full sample not after ``judged_ns``.

    ``samples`` may have the columns of ``devices.with_devices``.

    ``resident_bytes`` is anonymous plus file-backed memory. ``pool_bytes`` is what tlmem's devices
    held and no live object used. ``other_bytes`` is the rest whose owner is known:
    programs and libraries with their data, files, shared memory, stacks, mappings made by others,
    and what native code holds from the C allocator, as far as it is resident; its parts stand
    beside it. ``residual_bytes`` is what is left: the kernel and the allocators count at slightly
    different moments, and round to pages. Where the kernel did not list mappings it is also all
    that only these tell: data of libraries, stacks, mappings. All zero, and not ``known``, when
    resident memory was never sampled.
    """
    moments = Moments(samples)
    return moments.parts(moments.last(judged_ns)) if len(moments.rows) else Attribution()


def attribute_run(
    samples: pd.DataFrame, begin_ns: int, work_begin_ns: int, judged_ns: int
) -> tuple[Attribution, Change | None, Peak | None]:
    """The parts when the program was judged, what they grew by until then, and at the peak.

    Growth is that of the steady state, from the mapping snapshot nearest to its begin.
    Where most of it was freed just before the moment of judging, as by a ``main()`` that returned,
    the highest of the latest mapping snapshots is that moment.

    Args:
        samples: as for ``attribute``.
        begin_ns: when the program began.
        work_begin_ns: when its own work did; what follows at once is its warm-up.
        judged_ns: when it was judged.
    Returns:
        Not ``known``, None and None when resident memory was never sampled; no growth when there
        are no two moments to compare.
    """
    moments = Moments(samples)
    if len(moments.rows) == 0:
        return Attribution(), None, None

    def seconds(row: int) -> float:
        return max(0.0, (int(moments.time_ns[row]) - begin_ns) / 1e9)

    end = moments.before_unwinding(work_begin_ns, judged_ns)
    end = moments.undisturbed(end, work_begin_ns + UNWINDING_FROM * (judged_ns - work_begin_ns))
    level, highest = moments.parts(end), moments.highest()
    peak = Peak(moments.parts(highest), seconds(highest))
    steady_ns = work_begin_ns + RULES.warm_up * (moments.time_ns[end] - work_begin_ns)
    begin = moments.nearest(steady_ns, end)
    if begin >= end:
        return level, None, peak
    begin = moments.undisturbed(begin, work_begin_ns)
    grown = difference(moments.parts(begin), level)
    return level, Change(grown, seconds(begin), seconds(end)), peak


def difference(before: Attribution, after: Attribution) -> Attribution:
    """What each part grew by; negative where it shrank."""
    grown = {
        field.name: getattr(after, field.name) - getattr(before, field.name)
        for field in fields(Attribution)
        if field.name != "known"
    }
    return Attribution(**grown, known=before.known and after.known)


def fill(room: NDArray[np.int64], sizes: tuple[NDArray[np.int64], ...]) -> list[NDArray[np.int64]]:
    """As much of each size, one after the other, as there is room for."""
    taken = []
    for size in sizes:
        taken.append(np.maximum(0, np.minimum(size, room)))
        room = room - taken[-1]
    return taken


class Moments:
    """The samples that can be attributed.

    ``full`` are rows with resident memory and the C allocator's numbers, or at least the former;
    ``rows`` of these are mapping snapshots, in which all parts were taken together, or all if none
    is.
    """

    def __init__(self, samples: pd.DataFrame) -> None:
        self.window = Window(samples, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        self._carried: dict[str, NDArray[np.float64]] = {}
        self.time_ns = self.window.time_ns
        sampled = self.window.taken("anon")
        full = sampled & self.window.taken("malloc_used")
        self.full = np.flatnonzero(full if full.any() else sampled)
        listed = np.flatnonzero(sampled & mapping_snapshots(self.window.samples))
        self.rows = listed if len(listed) else self.full
        self.resident = self.bytes("anon") + self.bytes("file")
        self._handed_out = handed_out_bytes(self.window)

    def bytes(self, name: str) -> NDArray[np.float64]:
        """A metric in every sample."""
        if name not in self._carried:
            self._carried[name] = self.window.bytes(name)
        return self._carried[name]

    def last(self, time_ns: int) -> int:
        """The last row not after a time, else the first."""
        before = self.rows[self.time_ns[self.rows] <= time_ns]
        return int(before[-1] if len(before) else self.rows[0])

    def at_judging(self, judged_ns: int) -> int:
        """The last row, or the first after that moment if all was still as it had been."""
        later = self.rows[self.time_ns[self.rows] > judged_ns]
        now = int(np.searchsorted(self.time_ns, judged_ns, side="right")) - 1
        if len(later) and now >= 0:
            same = SAME_SHARE * self.resident[now]
            tracked = self.bytes("tracked")
            changes = [abs(of[later[0]] - of[now]) for of in (self.resident, tracked)]
            # Little of a large process may be most of what the program had.
            if max(changes) <= same and tracked[later[0]] >= RULES.majority * tracked[now]:
                return int(later[0])
        return self.last(judged_ns)

    def nearest(self, time_ns: float, end: int) -> int:
        """The row before ``end`` that is nearest to a time; ``end`` when it is the first."""
        before = self.rows[self.rows < end]
        if len(before) == 0:
            return end
        return int(before[np.argmin(np.abs(self.time_ns[before] - time_ns))])

    def before_unwinding(self, begin_ns: int, judged_ns: int) -> int:
        """The last row, or that before most of the growth was freed shortly before the end.

        Resident memory alone is sampled often enough to tell when that was.
        """
        end = self.at_judging(judged_ns)
        late_ns = begin_ns + UNWINDING_FROM * (self.time_ns[end] - begin_ns)
        every = (self.time_ns >= begin_ns) & (self.time_ns <= self.time_ns[end])
        lately = np.flatnonzero(every & (self.time_ns >= late_ns))
        if len(lately) == 0:  # the only mapping snapshot is older than the program's work
            return end
        highest = int(lately[np.argmax(self.resident[lately])])
        first = self.resident[np.argmax(every)]
        back = self.resident[highest] - self.resident[end]
        if back > RULES.given_back * (self.resident[highest] - first):
            return self.last(int(self.time_ns[highest]))
        return end

    def undisturbed(self, row: int, since_ns: float) -> int:
        """The row, or that before it if its parts contradict each other less.

        On a busy machine the sampler may have to wait in the middle of a mapping snapshot, while
        the program goes on. Rows before ``since_ns`` are none.
        """
        before = self.rows[(self.rows < row) & (self.time_ns[self.rows] >= since_ns)]
        residual = abs(self.parts(row).residual_bytes)
        if residual <= DISTURBED_BYTES or len(before) == 0:
            return row
        other = int(before[-1])
        return other if abs(self.parts(other).residual_bytes) < residual else row

    def highest(self) -> int:
        """The row at which resident memory was highest, a mapping snapshot if one was near it."""
        near_peak = self.rows[int(np.argmax(self.resident[self.rows]))]
        highest = self.full[int(np.argmax(self.resident[self.full]))]
        near = self.resident[near_peak] >= NEAR_PEAK * self.resident[highest]
        return int(near_peak if near else highest)

    def parts(self, row: int) -> Attribution:
        """The parts at one row."""
        columns = self.columns(np.array([row]))
        return Attribution(**{name: int(of[0]) for name, of in columns.items()}, known=True)

    def columns(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """The parts at many rows, by their names in ``Attribution``; each a column in bytes."""

        def value(name: str) -> NDArray[np.int64]:
            return np.rint(self.bytes(name)[rows]).astype(np.int64)

        listed = value("mappings_ns") == self.time_ns[rows]
        anonymous, file = np.where(listed, value("listed"), value("anon")), value("file")
        tracked, recorder = value("tracked"), value("recorder")
        if self.window.taken("recorder_resident").any():
            recorder = np.minimum(recorder, value("recorder_resident"))
        tapes = np.minimum(value("tapes"), recorder)
        untouched = np.minimum(value("untouched"), tracked)
        python = value("python_arena") + value("python_large") - value("python_untouched")
        data, stacks = value("library_data"), value("stacks")
        log = np.minimum(value("log_file"), file)
        unexplained = anonymous - (tracked - untouched) - python - recorder - data - stacks
        pool = np.maximum(0, value("device_unused") - value("idle_untouched"))
        mapped = value("mapped_by_others")
        native = value("malloc_used") - np.rint(self._handed_out[rows]).astype(np.int64)
        native = np.maximum(0, native - value("native_untouched"))
        free = np.where(listed, value("allocator_kept"), value("malloc_free"))
        # Without a mapping snapshot as much of these is taken as resident as there is room for.
        taken = fill(unexplained, (pool, mapped, native, free))
        pool, mapped, native, free = (
            np.where(listed, size, part)
            for size, part in zip((pool, mapped, native, free), taken, strict=True)
        )
        unexplained = unexplained - (pool + mapped + native + free)
        shared, files = value("shared"), value("data_files")
        return {
            "resident_bytes": anonymous + file,
            "tracked_bytes": tracked,
            "untouched_bytes": untouched,
            "pool_bytes": pool,
            "python_bytes": python,
            "allocator_free_bytes": free,
            "tape_bytes": tapes,
            "recorder_bytes": recorder - tapes + log,
            "other_bytes": file - log + native + data + stacks + mapped,
            "residual_bytes": unexplained,
            "native_bytes": native,
            "mapped_bytes": mapped,
            "library_bytes": file - log - shared - files + data,
            "stack_bytes": stacks,
            "file_bytes": files,
            "shared_bytes": shared,
        }
