"""Where resident memory is over time: the layers of the picture on the overview.

Covers: the parts of ``analysis.attribution`` at every sample, and what one column of a picture
shows of them. Does not cover: how a column is drawn (``widgets.area_chart``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.memory.attribution import Moments

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One part: its name in words, its colour, and the sign that fills it where there is none.

    The signs differ, so that layers are distinguished without colour.
    """

    name: str
    sign: str
    colour: str


ARRAYS = Layer("arrays", "#", "#3d7ebd")
POOLS = Layer("pools", "%", "#c08a3e")
PYTHON = Layer("Python", "=", "#a89a3c")
FREED = Layer("freed, kept", "-", "#6b7486")
RECORDER = Layer("recorder", ":", "#6a5fb0")
OTHER = Layer("files+native", ".", "#3f7d60")
RESIDUAL = Layer("unexplained", "?", "#8f5069")
PARTS = (ARRAYS, POOLS, PYTHON, FREED, RECORDER, OTHER, RESIDUAL)
ANONYMOUS = Layer("anonymous", "=", "#3d7ebd")
FILES = Layer("files", ".", "#3f7d60")


@dataclass(frozen=True)
class Layers:
    """Bytes of each layer at each time; ``values[layer, sample]``, the first layer is lowest."""

    layers: tuple[Layer, ...]
    time_ns: NDArray[np.int64]
    values: Floats

    @property
    def known(self) -> bool:
        """Whether memory was ever sampled."""
        return bool(len(self.time_ns))

    def columns(self, start_ns: int, stop_ns: int, width: int) -> Floats:
        """What ``width`` columns of a picture show: of each the sample with the highest sum.

        A column without a sample shows the last one before it; one before the first sample of all
        shows nothing (NaN).
        """
        columns = np.full((len(self.layers), max(width, 0)), np.nan)
        if not self.known or width <= 0:
            return columns
        edges = np.linspace(start_ns, max(stop_ns, start_ns + 1), width + 1)
        first = np.searchsorted(self.time_ns, edges[:-1], side="left")
        last = np.searchsorted(self.time_ns, edges[1:], side="left")
        last[-1] = np.searchsorted(self.time_ns, edges[-1], side="right")
        sums = self.values.sum(axis=0)
        for x, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            if b > a:
                columns[:, x] = self.values[:, a + int(np.argmax(sums[a:b]))]
            elif a > 0:
                columns[:, x] = self.values[:, a - 1]
        return columns

    def at(self, time_ns: int) -> Floats | None:
        """The layers at the last sample not after a time; None before the first one."""
        at = int(np.searchsorted(self.time_ns, time_ns, side="right")) - 1
        return None if at < 0 else self.values[:, at]


def layers_of(samples: pd.DataFrame) -> Layers:
    """The parts of resident memory at every sample of it.

    Args:
        samples: the table, with the columns of ``devices.with_devices`` where there are devices.

    Parts are those of ``analysis.memory.attribution``, which says what they mean; where tracked
    memory is not known yet, anonymous and file-backed memory are all there is.
    """
    moments = Moments(samples)
    rows = np.flatnonzero(moments.window.taken("anon"))
    time_ns = moments.time_ns[rows]
    if not moments.window.taken("tracked").any():
        values = np.stack([moments.bytes("anon")[rows], moments.bytes("file")[rows]])
        return Layers((ANONYMOUS, FILES), time_ns, values)
    part = moments.columns(rows)
    values = np.stack(
        [
            part["tracked_bytes"] - part["untouched_bytes"],
            part["pool_bytes"],
            part["python_bytes"],
            part["allocator_free_bytes"],
            part["recorder_bytes"] + part["tape_bytes"],
            part["other_bytes"],
            part["residual_bytes"],
        ]
    )
    return Layers(PARTS, time_ns, np.maximum(values, 0).astype(np.float64))


def combined(each: list[tuple[int, Layers, bool]]) -> Layers:
    """The sum of several processes over their common time.

    Args:
        each: of every process the nanoseconds by which it began after the first, its layers, and
            whether it has ended. It counts from its first sample on; one that has ended up to its
            last one.
    """
    some = [process for process in each if process[1].known]
    if not some:
        return Layers(PARTS, np.empty(0, np.int64), np.empty((len(PARTS), 0)))
    kinds = some[0][1].layers
    same = [process for process in some if process[1].layers == kinds]
    times = np.unique(np.concatenate([layers.time_ns + shift for shift, layers, _ in same]))
    values = np.zeros((len(kinds), len(times)))
    for shift, layers, ended in same:
        at = np.searchsorted(layers.time_ns + shift, times, side="right") - 1
        there = at >= 0
        if ended:
            there &= times <= layers.time_ns[-1] + shift
        values[:, there] += layers.values[:, at[there]]
    return Layers(kinds, times, values)
