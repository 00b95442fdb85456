"""Where resident memory is at the moment of judging, as parts that add up.

Covers: one picture from the last full sample. Does not cover: change over time; see ``resident``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tlmem.analysis.model import Attribution
from tlmem.analysis.resident import Window, handed_out_bytes


def attribute(samples: pd.DataFrame, judged_ns: int) -> Attribution:
    """The parts of resident memory at the last full sample not after ``judged_ns``.

    ``samples`` may have the columns of ``devices.with_devices``.

    ``resident_bytes`` is anonymous plus file-backed memory. ``pool_bytes`` is what tlmem's devices
    held and no live object used. ``other_bytes`` is file-backed memory
    and what native code holds from the C allocator, as far as it is resident. ``residual_bytes``
    is what is left: libraries' data, thread stacks, mappings made by native code, rounding to
    pages. All zero, and not ``known``, when resident memory was never sampled.
    """
    window = Window(samples, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    resident = window.taken("anon")
    if not resident.any():
        return Attribution()
    full = resident & window.taken("malloc_used")
    rows = np.flatnonzero(full if full.any() else resident)
    before = rows[window.time_ns[rows] <= judged_ns]
    row = int(before[-1] if len(before) else rows[0])

    def value(name: str) -> int:
        return round(float(window.bytes(name)[row]))

    anonymous, file = value("anon"), value("file")
    tracked, recorder = value("tracked"), value("recorder")
    tapes = min(value("tapes"), recorder)
    untouched = min(value("untouched"), tracked)
    python = value("python_arena") + value("python_large")
    unexplained = anonymous - (tracked - untouched) - python - recorder
    pool = max(0, min(value("device_unused"), unexplained))
    unexplained -= pool
    allocator_free = max(0, min(value("malloc_free"), unexplained))
    unexplained -= allocator_free
    native = value("malloc_used") - round(float(handed_out_bytes(window)[row]))
    native = max(0, min(native, unexplained))
    return Attribution(
        resident_bytes=anonymous + file,
        tracked_bytes=tracked,
        untouched_bytes=untouched,
        pool_bytes=pool,
        python_bytes=python,
        allocator_free_bytes=allocator_free,
        tape_bytes=tapes,
        recorder_bytes=recorder - tapes,
        other_bytes=file + native,
        residual_bytes=unexplained - native,
        known=True,
    )
