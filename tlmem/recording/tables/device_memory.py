"""What devices had handed out at any time, and how much of it live objects used.

Covers: bytes over time from the events of devices and of objects.
Does not cover: who the objects belong to (``ledger``), what it means (``analysis``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tlmem.events import FIRST_RUNTIME_DEVICE, Device
from tlmem.recording.format.checkpoint import FoldTotals
from tlmem.recording.format.pairing import device_changes
from tlmem.recording.format.timeline import Timeline

ToNs = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class DeviceChanges:
    """When drivers of devices handed out memory or got it back: ns, bytes, and the device."""

    time_ns: np.ndarray
    bytes: np.ndarray
    device: np.ndarray

    @staticmethod
    def of(timeline: Timeline, to_ns: ToNs) -> DeviceChanges:
        """Those of some events."""
        at, change = device_changes(timeline)
        return DeviceChanges(to_ns(timeline.ticks[at]), change, timeline.device[at])


def device_memory(
    changes: DeviceChanges,
    objects: pd.DataFrame,
    folded: FoldTotals,
    times_ns: np.ndarray,
    horizon_ns: int,
) -> pd.DataFrame:
    """Bytes at each of some times; NaN up to the horizon, where events were folded.

    Args:
        objects: the table of the recording.
    Returns:
        ``objects`` that are alive and have memory of a device, ``handed_out`` by the drivers of all
        devices, ``host`` of it from the C allocator (the device ``cpu``), in ``host_count`` buffers
        as far as they are not folded.
    """
    here = changes.device != Device.TORCH_ACCELERATOR  # has memory of its own
    when, change = changes.time_ns[here], changes.bytes[here]
    host = changes.device[here] == Device.CPU
    device = objects["device"].to_numpy()
    ours = (device >= FIRST_RUNTIME_DEVICE) & (device != Device.FOREIGN)
    size, born, died = (
        objects[name].to_numpy(np.int64)[ours] for name in ("size_bytes", "born_ns", "died_ns")
    )
    size = size * np.where(objects["folded"].to_numpy()[ours], folded.live_stride, 1)
    dead = died >= 0
    used = _sum_until(times_ns, born, size) - _sum_until(times_ns, died[dead], size[dead])
    # Of what was handed out before the horizon only the sum is known: nearly all is the host's.
    before = folded.device_bytes
    columns = {
        "objects": used,
        "handed_out": before + _sum_until(times_ns, when, change),
        "host": before + _sum_until(times_ns, when[host], change[host]),
        "host_count": _sum_until(times_ns, when[host], np.sign(change[host])),
    }
    known = times_ns >= horizon_ns
    return pd.DataFrame({name: np.where(known, of, np.nan) for name, of in columns.items()})


def _sum_until(times_ns: np.ndarray, when: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sum of all values up to each time, that time included."""
    order = np.argsort(when, kind="stable")
    sums = np.concatenate([[0], np.cumsum(values[order])])
    return sums[np.searchsorted(when[order], times_ns, side="right")]
