"""How far a program had come by its own time: without pauses, and without waiting for a processor.

On a busy machine a program stands still while it is ready to run. On the wall's clock what it does
evenly comes in parts, and a leak seems to end when another process begins.

Covers: clocks of time. Does not cover: those that count what a program made; see ``lifetimes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.rules import RULES

if TYPE_CHECKING:
    import pandas as pd

FEWEST_SAMPLES = 12
"""With fewer samples the run is measured by the clock on the wall: a pause would be most of it."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Delays:
    """How long the main thread had waited for a processor: ``waited_ns`` at moments ``time_ns``.

    Both are empty where that is not known.
    """

    time_ns: Floats
    waited_ns: Floats

    @classmethod
    def of(cls, samples: pd.DataFrame) -> Delays:
        """As the samples of a recording tell it."""
        if "delayed" not in samples:
            return cls(np.empty(0), np.empty(0))
        waited = samples["delayed"].to_numpy(np.float64, na_value=np.nan)
        known = ~np.isnan(waited)
        return cls(samples["time_ns"].to_numpy(np.float64)[known], waited[known])

    def left_out_of(self, time_ns: NDArray[Any]) -> Floats:
        """Moments, ascending, less what had been waited for until then."""
        times = np.asarray(time_ns, np.float64)
        if not len(self.time_ns):
            return times
        return np.maximum.accumulate(times - np.interp(times, self.time_ns, self.waited_ns))


@dataclass(frozen=True)
class RunClock:
    """The program's own time, without pauses of the machine: ``clock`` at moments ``ticks``, ns."""

    ticks: Ints
    clock: Floats

    def at(self, time_ns: float) -> float:
        """The program's own time at a moment, in ns."""
        return float(np.interp(time_ns, self.ticks, self.clock))


def without_pauses(times: NDArray) -> Floats:
    """How much of its own time a program had taken at each of its times, which are ascending.

    A gap between two that is longer than nearly all of them is a pause, of the program or of the
    machine, and counts no more than ``RULES.longest_pause``.
    """
    if len(times) == 0:
        return np.zeros(0)
    gaps = np.zeros(len(times))
    np.subtract(times[1:], times[:-1], out=gaps[1:])
    position = int(RULES.usual * (len(gaps) - 1))
    usual = np.partition(gaps, position)[: position + 1]
    longest = max(float(usual[position]), RULES.longest_pause * float(usual.sum()))
    del usual
    return np.cumsum(np.minimum(gaps, longest, out=gaps), out=gaps)


def clock_of_run(samples: Ints, begin_ns: int, cut_ns: int, delays: Delays) -> RunClock:
    """How much of its own time a program had taken at each of its samples.

    Args:
        samples: when the process was sampled. A gap between samples that is longer than usual is a
            pause of the machine and no part of the run.
        begin_ns, cut_ns: the program's run.
        delays: how long it waited for a processor.
    """
    ticks = np.concatenate(
        ([begin_ns], samples[(samples > begin_ns) & (samples < cut_ns)], [cut_ns])
    )
    own = delays.left_out_of(ticks)
    clock = without_pauses(own) if len(ticks) > FEWEST_SAMPLES else own - own[0]
    return RunClock(ticks, clock)
