"""Memory that the program freed and that stays resident: who keeps it, the allocator or a pool?

Covers: what is kept through the whole steady state. Does not cover: what grows; see ``resident``.
See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tlmem.analysis.growth.process_growth import Window

Floats = NDArray[np.float64]

RETAINED_BYTES = 30_000_000
IDLE_BYTES = 40_000_000
"""More than the 32 MiB that a device's pool of buffers may keep when nobody says otherwise."""
RETAINED_SHARE = 0.5
FEWEST_SAMPLES = 6
FEWEST_ASKED = 3
"""The C allocator is asked seldom when its memory is in many pieces; resident memory often."""

ALLOCATOR = "the C allocator keeps it"
POOL = "buffers of devices are kept, by a pool or by the driver, and no live object uses them"


@dataclass(frozen=True)
class Kept:
    """``bytes`` were freed and resident for ``seconds``; ``by`` says who keeps them."""

    bytes: int = 0
    seconds: float = 0.0
    by: str = ALLOCATOR


def kept_memory(window: Window, handed_out: Floats, steady_ns: float) -> Kept:
    """What was freed and yet stayed resident through the whole steady state.

    Args:
        window: the samples up to the moment of judging.
        handed_out: bytes that the C allocator gave to arrays, devices and Python, at each sample.
        steady_ns: when the steady state began.
    """
    asked = window.taken("malloc_free") & (window.time_ns >= steady_ns)
    if asked.sum() < FEWEST_ASKED:
        return Kept()
    rows = window.taken("anon") & (window.time_ns >= window.time_ns[np.argmax(asked)])
    if rows.sum() < FEWEST_SAMPLES:
        return Kept()
    resident = window.bytes("anon") - window.bytes("recorder")
    found = []
    for free, by, fewest in (
        (free_in_allocator(window, resident, handed_out), ALLOCATOR, RETAINED_BYTES),
        (idle_on_devices(window, resident, handed_out), POOL, IDLE_BYTES),
    ):
        least = float(free[rows].min())
        if least >= max(fewest, RETAINED_SHARE * float(resident[rows][-1])):
            times = window.time_ns[rows]
            found.append(Kept(round(least), float(times[-1] - times[0]) / 1e9, by))
    return max(found, key=lambda kept: kept.bytes, default=Kept())


def free_in_allocator(window: Window, resident: Floats, handed_out: Floats) -> Floats:
    """Free bytes in the C allocator that are resident, at most, at each sample.

    Native code has what it had when the allocator was last asked; arrays and Python's blocks are
    known at each sample.
    """
    in_use = native_bytes(window, handed_out) + handed_out - window.bytes("untouched")
    in_use = in_use + window.bytes("python_arena") + mapped_bytes(window) + held_mapped(window)
    return np.clip(np.minimum(window.bytes("malloc_free"), resident - in_use), 0.0, None)


def idle_on_devices(window: Window, resident: Floats, handed_out: Floats) -> Floats:
    """Bytes that devices hold, no live object uses, and that are resident, at most."""
    idle = window.bytes("device_unused")
    in_use = handed_out + held_mapped(window) - idle + window.bytes("python_arena")
    in_use = in_use - window.bytes("untouched") + mapped_bytes(window)
    return np.clip(np.minimum(idle, resident - in_use), 0.0, None)


def native_bytes(window: Window, handed_out: Floats) -> Floats:
    """What native code had from the C allocator when that was last asked."""
    asked = window.taken("malloc_used")
    native = np.where(asked, window.bytes("malloc_used") - handed_out, np.nan)
    return np.maximum(pd.Series(native).ffill().bfill().to_numpy(np.float64), 0.0)


def held_mapped(window: Window) -> Floats:
    """What devices hold that the C allocator did not give them, used or not."""
    held = window.bytes("device_objects") + window.bytes("device_unused")
    return np.maximum(held - window.bytes("device_host"), 0.0)


def mapped_bytes(window: Window) -> Floats:
    """Data of libraries, stacks, and what others mapped."""
    names = ("library_data", "stacks", "mapped_by_others")
    return np.sum([window.bytes(name) for name in names], axis=0)
