"""What grows, how fast, and how sure is that? Curves of what grows with their fitted slopes.

Covers: the curve behind each finding about growth, the line through it, its band of confidence.
Does not cover: how slopes are found; see ``tlmem.analysis``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.analysis.growth.curves import Window, memory_curve
from tlmem.analysis.lifetimes import alive_at
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import Finding, Rate, interval
from tlmem.report.plots import style
from tlmem.report.plots.plot_data import Floats, Ints, NothingToDraw, PlotView, label_of
from tlmem.units import format_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

MOMENTS = 400
MOST_CURVES = 4
SAMPLED = {
    "native-growth": "native",
    "shared-growth": "shared",
    "python-growth": "python",
    "driver-growth": "device",
    "tape-growth": "tapes",
}
"""Findings about samples, and the curve of memory that each is about."""


@dataclass(frozen=True)
class GrowthCurve:
    """Bytes over time, and where something grows the straight line that fits them.

    ``fit_ns`` are the ends of that line and ``fit_bytes`` its values there; ``slope``, ``low`` and
    ``high`` are bytes per second, the latter two the ends of the interval of confidence. Where
    there is no interval ``low`` and ``high`` are None, and where nothing grows ``slope`` is.
    """

    name: str
    time_ns: Ints
    bytes: Floats
    slope: float | None = None
    low: float | None = None
    high: float | None = None
    fit_ns: tuple[int, int] = (0, 0)
    fit_bytes: tuple[float, float] = (0.0, 0.0)

    def band(self, time_ns: Ints) -> tuple[Floats, Floats] | None:
        """The lowest and highest line at each time: both turn around the middle of the fit."""
        if self.low is None or self.high is None:
            return None
        middle_ns = sum(self.fit_ns) / 2
        middle = sum(self.fit_bytes) / 2
        away = (time_ns - middle_ns) / 1e9
        ends = np.vstack((middle + self.low * away, middle + self.high * away))
        return ends.min(axis=0), ends.max(axis=0)


def growth_curves(view: PlotView, most: int = MOST_CURVES) -> list[GrowthCurve]:
    """A curve for each finding about growth, most important first; tracked memory without any.

    Raises:
        NothingToDraw: there are neither objects nor samples.
    """
    curves = []
    for finding in view.analysis.findings:
        if finding.kind == "growing-site":
            curves.append(curve_of_line(view, finding))
        elif finding.kind in SAMPLED:
            curves.append(curve_of_samples(view, finding))
        if len(curves) == most:
            break
    return curves or [tracked_curve(view)]


def curve_of_line(view: PlotView, finding: Finding) -> GrowthCurve:
    """What a line keeps: bytes alive of all that it made."""
    group = view.places.frames.index(finding.site) if finding.site in view.places.frames else -1
    rows = np.flatnonzero(view.objects.group == group)
    times, held = held_over_time(view, rows)
    name = label_of(finding.site) if finding.site else "a line"
    return fitted(name, times, held, finding)


def curve_of_samples(view: PlotView, finding: Finding) -> GrowthCurve:
    """What a finding about samples of resident memory looked at."""
    window = Window(with_devices(view.recording), view.begin_ns, view.end_ns)
    curve = memory_curve(window, SAMPLED[finding.kind])
    chosen = style.evenly(len(curve.time_ns), MOMENTS)
    return fitted(curve.subject, curve.time_ns[chosen], curve.values[chosen], finding)


def tracked_curve(view: PlotView) -> GrowthCurve:
    """All tracked memory, where nothing grows."""
    if len(view.objects) == 0:
        raise NothingToDraw(f"{view.recording.path} holds no object, and nothing that grows.")
    times, held = held_over_time(view, np.arange(len(view.objects)))
    return GrowthCurve("tracked memory", times, held)


def held_over_time(view: PlotView, rows: Ints) -> tuple[Ints, Floats]:
    """Bytes of some objects alive at each moment of the range."""
    objects, times = view.objects, view.moments(MOMENTS)
    amount = (objects.size * objects.weight)[rows]
    return times, alive_at(times, objects.born[rows], objects.died[rows], amount)


def fitted(name: str, times_ns: Ints, held: Floats, finding: Finding) -> GrowthCurve:
    """A curve with the slope of its finding, laid through the middle of the time it is about."""
    slope, begin_ns, end_ns = finding.slope_bytes_per_s, finding.grew_from_ns, finding.grew_until_ns
    if slope is None or begin_ns is None or end_ns is None:
        return GrowthCurve(name, times_ns, held)
    judged = (times_ns >= begin_ns) & (times_ns <= end_ns)
    if not judged.any():
        return GrowthCurve(name, times_ns, held)
    first, last = max(begin_ns, int(times_ns[0])), min(end_ns, int(times_ns[-1]))
    level = float(np.median(held[judged] - slope * times_ns[judged] / 1e9))
    low, high = finding.slope_low_bytes_per_s, finding.slope_high_bytes_per_s
    return GrowthCurve(
        name=name,
        time_ns=times_ns,
        bytes=held,
        slope=slope,
        low=low,
        high=high,
        fit_ns=(first, last),
        fit_bytes=(level + slope * first / 1e9, level + slope * last / 1e9),
    )


def draw(figure: SubFigure, view: PlotView) -> None:
    """Draws the curves with their lines and bands; a sentence says so where nothing grows."""
    curves = growth_curves(view)
    (axes,) = style.panels(figure, view.name, title_of(view, curves))
    unit_ns = style.time_axis(axes, view.begin_ns, view.end_ns)
    unit = style.bytes_axis(axes, max(float(c.bytes.max(initial=0)) for c in curves), "bytes")
    handles, labels = [], []
    for number, curve in enumerate(curves):
        more, words = draw_curve(axes, curve, number, unit_ns, unit)
        handles += more
        labels += words
    style.legend(axes, handles, labels)
    style.marks(axes, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)


def title_of(view: PlotView, curves: list[GrowthCurve]) -> str:
    """What the picture shows, in words; a doubt is never a pass."""
    if curves[0].slope is not None:
        return "What grows, and how fast"
    if view.analysis.verdict.outcome == "cannot-judge":
        return "Tracked memory; whether it grows cannot be judged"
    return "Tracked memory; nothing grows"


def draw_curve(
    axes: Axes, curve: GrowthCurve, number: int, unit_ns: float, unit: float
) -> tuple[list, list[str]]:
    """One curve, its line and its band; handles and labels for the legend."""
    handles: list[Any] = [
        *axes.plot(
            curve.time_ns / unit_ns,
            curve.bytes / unit,
            linewidth=1.6,
            color=style.line_colour(number),
        )
    ]
    labels = [curve.name]
    if curve.slope is None:
        return handles, labels
    ends = np.array(curve.fit_ns)
    handles += axes.plot(
        ends / unit_ns, np.array(curve.fit_bytes) / unit, color=style.INK,
        linestyle=style.line(number + 1), linewidth=1.0,
    )  # fmt: skip
    labels.append(f"+{format_rate(curve.slope)}")
    ends = np.array([ends[0], ends.sum() // 2, ends[1]])
    band = curve.band(ends)
    if band is not None:
        handles.append(
            axes.fill_between(
                ends / unit_ns, band[0] / unit, band[1] / unit, alpha=0.25, hatch="///",
                linewidth=0.0, edgecolor=style.INK, facecolor=style.line_colour(number),
            )
        )  # fmt: skip
        rate = Rate(curve.slope, curve.low or 0.0, curve.high or 0.0)
        labels.append(interval(rate, format_rate))
    return handles, labels
