"""Where was memory over time? Resident memory as a line above the areas that it is made of.

Covers: the parts of resident memory at up to ``MOMENTS`` moments, and their picture.
Does not cover: what the parts mean; see ``tlmem.analysis.memory.attribution``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.lifetimes import alive_at
from tlmem.analysis.memory.attribution import Moments
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import Attribution
from tlmem.report.plots import style
from tlmem.report.plots.plot_data import Floats, Ints, NothingToDraw, PlotView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

MOMENTS = 240
LEAST_SEEN = 0.02
"""Tracked memory has a line of its own when it rises above its area by this share of the height."""
MOST_UNTOUCHED = 1.6
"""Memory that was never touched may be far more than the machine has; beyond so many times what is
resident its line leaves the picture, and what is resident can be seen."""
CARRIED = ("anon", "file")
"""Without these a sample says nothing of resident memory."""
BANDS = (
    ("tracked arrays and objects", 0, ""),
    ("kept by devices and pools", 1, "//"),
    ("Python's heap", 2, ".."),
    ("freed, kept by the allocator", 4, "\\\\"),
    ("native code's allocations", 5, "xx"),
    ("records on tapes", 3, "oo"),
    ("the recorder", 6, "--"),
    ("libraries, files, stacks", None, ""),
    ("not explained", None, "++"),
)
"""Name, number of the colour and hatch of each area, from below; None is grey."""


@dataclass(frozen=True)
class MemoryOverTime:
    """Bytes at each moment: ``resident``, and the parts that add up to it, by name.

    ``resident`` and ``bands`` but the tracked one are empty when resident memory was never
    sampled; then ``tracked`` is all there is. ``tracked`` counts what was never touched too.
    """

    time_ns: Ints
    resident: Floats
    bands: dict[str, Floats]
    tracked_time_ns: Ints
    tracked: Floats


def memory_over_time(
    samples: pd.DataFrame, view: PlotView, moments: int = MOMENTS
) -> MemoryOverTime:
    """The parts of resident memory over time.

    Args:
        samples: with the columns of ``devices.with_devices``.
        view: the range of time.
        moments: of as many samples at most; of those close to each other the one that is highest.
    Raises:
        NothingToDraw: there are neither samples of resident memory nor objects.
    """
    times = view.moments(2 * moments)
    objects = view.objects
    size = objects.size * objects.weight
    tracked = alive_at(times, objects.born, objects.died, size)
    chosen = highest_samples(samples, view.begin_ns, view.end_ns, moments)
    if len(chosen) == 0 and len(objects) == 0:
        raise NothingToDraw(f"{view.recording.path} holds no object and no sample of memory.")
    moment = Moments(chosen) if len(chosen) else None
    parts = [moment.parts(row) for row in range(len(chosen))] if moment else []
    return MemoryOverTime(
        time_ns=chosen["time_ns"].to_numpy(np.int64),
        resident=np.array([part.resident_bytes for part in parts], float),
        bands=bands_of(parts),
        tracked_time_ns=times,
        tracked=tracked,
    )


def highest_samples(
    samples: pd.DataFrame, begin_ns: int, end_ns: int, moments: int
) -> pd.DataFrame:
    """The highest sample of resident memory in each of many equal parts of a range of time.

    What a sample did not take is carried on from the one before, or back from the first. None of
    them counts as a picture in which the kernel listed mappings (``analysis.memory.mappings``):
    parts that were taken a moment later than resident memory would stand out of it there.
    """
    inside = samples["time_ns"].between(begin_ns, end_ns) & samples[list(CARRIED)].notna().all(
        axis=1
    )
    if not inside.any():
        return samples.iloc[:0]
    carried = samples.ffill().bfill().assign(mappings_ns=-1.0)[inside]
    time_ns = carried["time_ns"].to_numpy(np.int64)
    part = (time_ns - begin_ns) * moments // max(1, end_ns - begin_ns + 1)
    resident = (carried["anon"] + carried["file"]).to_numpy()
    order = np.lexsort((-resident, part))
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    return carried.iloc[np.sort(order[first])]


def bands_of(parts: list[Attribution]) -> dict[str, Floats]:
    """The areas of the picture, from below: bytes by name, without those that are always 0.

    What is not explained can be less than nothing, where pages are counted twice; the area is 0.
    """
    if not parts:
        return {}
    rows = np.array(
        [
            (
                part.tracked_bytes - part.untouched_bytes,
                part.pool_bytes,
                part.python_bytes,
                part.allocator_free_bytes,
                part.native_bytes,
                part.tape_bytes,
                part.recorder_bytes,
                part.other_bytes - part.native_bytes,
            )
            for part in parts
        ],
        float,
    )
    resident = np.array([part.resident_bytes for part in parts], float)
    rest = np.maximum(0.0, resident - rows.sum(axis=1))
    columns = np.column_stack((rows, rest)).T
    return {
        name: values for (name, _, _), values in zip(BANDS, columns, strict=True) if values.any()
    }


def draw(figure: SubFigure, view: PlotView) -> None:
    """Draws the areas, resident memory above them, and the program's marks."""
    data = memory_over_time(with_devices(view.recording), view)
    title = "Resident memory by what it is" if data.bands else "Tracked memory"
    (axes,) = style.panels(figure, view.name, title)
    unit_ns = style.time_axis(axes, view.begin_ns, view.end_ns)
    parts = sum(data.bands.values(), np.zeros(1))
    largest = max(float(data.resident.max(initial=0.0)), float(parts.max()))
    tracked = float(data.tracked.max(initial=0.0))
    if not data.bands or tracked < MOST_UNTOUCHED * largest:
        largest = max(largest, tracked)
    unit = style.bytes_axis(axes, largest, "memory")
    handles, labels = draw_areas(axes, data, unit_ns, unit)
    resident = data.bands.get(BANDS[0][0], np.zeros(1)).max()
    if tracked - resident > LEAST_SEEN * largest or not data.bands:
        handles += axes.plot(
            data.tracked_time_ns / unit_ns, data.tracked / unit, color=style.INK, linestyle=":",
            linewidth=1.2, drawstyle="steps-post",
        )  # fmt: skip
        labels.append("tracked, resident or not")
    style.legend(axes, handles, labels)
    style.marks(axes, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)


def draw_areas(
    axes: Axes, data: MemoryOverTime, unit_ns: float, unit: float
) -> tuple[list, list[str]]:
    """The areas and the line of resident memory; their handles and labels from above."""
    if not data.bands:
        return [], []
    known = {name: (number, hatch) for name, number, hatch in BANDS}
    handles = []
    time = data.time_ns / unit_ns
    floor = np.zeros(len(time))
    for name, values in data.bands.items():
        number, hatch = known[name]
        face = style.REST if number is None else style.colour(number)
        handles.append(
            axes.fill_between(
                time, floor / unit, (floor + values) / unit, hatch=hatch, linewidth=0.0,
                facecolor=face, edgecolor=style.hatch_colour(face),
            )
        )  # fmt: skip
        floor = floor + values
        axes.plot(time, floor / unit, color="white", linewidth=0.6)
    (line,) = axes.plot(
        time, data.resident / unit, color=style.INK, linewidth=1.6,
        marker="o" if len(time) < 4 else "", markersize=3,
    )  # fmt: skip
    return [line, *handles[::-1]], ["resident", *list(data.bands)[::-1]]
