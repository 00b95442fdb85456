"""Memory of tlmem's own devices beside the samples of resident memory.

Covers: what devices held at the time of each sample, and what others mapped, as further columns.
Does not cover: what follows from it; see ``growth.process_growth`` and ``attribution``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.memory.mappings import with_mappings

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording


def with_devices(recording: Recording) -> pd.DataFrame:
    """The samples, with bytes of devices where the recording has any, quarantine and mappings.

    ``device_objects`` are used by live objects, ``device_host`` came from the C allocator in
    ``device_host_count`` buffers, and ``device_unused`` is held by drivers and not used: arenas,
    kept buffers, what a driver keeps.
    """
    samples = with_quarantine(recording)
    memory = recording.device_memory(samples["time_ns"].to_numpy(np.int64))
    driver = samples["driver"].ffill().fillna(0.0).to_numpy()
    held = np.fmax(driver, memory["handed_out"].to_numpy())
    if not (held > 0).any():
        return with_mappings(samples)
    used = memory["objects"].to_numpy()
    return with_mappings(
        samples.assign(
            device_objects=used,
            device_host=memory["host"].to_numpy(),
            device_host_count=memory["host_count"].to_numpy(),
            device_unused=held - used,
        )
    )


def with_quarantine(recording: Recording) -> pd.DataFrame:
    """The samples; under ``record --zombie`` with ``quarantine``, bytes of freed memory it keeps.

    Small payloads stay handed out by the C allocator. How many bytes that is, is not sampled apart
    from what else the recorder has, which is therefore taken for it: too much rather than too
    little, so that quarantine is not taken for a leak.
    """
    samples = recording.samples
    if recording.info.get("quarantine_bytes", "0") == "0":
        return samples
    recorder = samples["recorder"].ffill().bfill().fillna(0.0)
    return samples.assign(quarantine=recorder - recorder.min())
