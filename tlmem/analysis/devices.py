"""Memory of tlmem's own devices beside the samples of resident memory.

Covers: what devices held at the time of each sample, as further columns.
Does not cover: what follows from it; see ``resident`` and ``attribution``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from tlmem.recording import Recording


def with_devices(recording: Recording) -> pd.DataFrame:
    """The samples, with bytes of devices where the recording has any.

    ``device_objects`` are used by live objects, ``device_host`` came from the C allocator, and
    ``device_unused`` is held by drivers and not used: arenas, kept buffers, what a driver keeps.
    """
    samples = recording.samples
    memory = recording.device_memory(samples["time_ns"].to_numpy(np.int64))
    driver = samples["driver"].ffill().fillna(0.0).to_numpy()
    held = np.fmax(driver, memory["handed_out"].to_numpy())
    if not (held > 0).any():
        return samples
    used = memory["objects"].to_numpy()
    return samples.assign(
        device_objects=used, device_host=memory["host"].to_numpy(), device_unused=held - used
    )
