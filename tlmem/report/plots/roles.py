"""What was PyTorch's memory for over time? Bytes alive by role as areas, with the peak marked.

Covers: the roles at the highest moment of each of ``MOMENTS`` parts of the time, and their picture.
Does not cover: how a block gets its role; see ``tlmem.analysis.peak.roles``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.analysis.lifetimes import alive_by_group
from tlmem.analysis.peak.blocks import HOST, TORCH_DEVICES, Blocks, Curve
from tlmem.analysis.peak.explained import Known
from tlmem.analysis.peak.roles import NAMES, Role
from tlmem.report.plots import style
from tlmem.report.plots.plot_data import Floats, Ints, NothingToDraw, PlotView
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

MOMENTS, MOMENTS_PER_IN = 400, 80
"""Parts of the time, at most; in narrow pictures each is two pixels wide."""
HIDDEN, RESTLESS = 0.25, 0.05
"""Lows have a line of their own when on average the areas rise so far above them, and from one part
to the next they change by less than that, as shares of the height. So it is where each part has
whole steps of a training loop, of which the areas show only the highest moments."""
NOTHING_YET = -2
"""Stands for an event before all others, and before what is older than the recording."""
OTHER = "other"
"""Of what is not PyTorch's: NumPy's arrays and objects of other sources."""
BANDS = (
    (Role.WEIGHTS, 0, ""),
    (Role.OPTIMIZER_STATE, 1, "//"),
    (Role.GRADIENTS, 2, ".."),
    (Role.ACTIVATIONS, 3, ""),
    (Role.RECOMPUTED, 4, "\\\\"),
    (Role.TEMPORARIES, 5, "xx"),
    (Role.INPUTS, 6, "--"),
    (Role.KEPT, None, "oo"),
    (Role.WORKSPACES, None, "++"),
)
"""Role, number of the colour and hatch of each area, from below; None is grey. ``other`` is on top.
"""


@dataclass(frozen=True)
class RolesOverTime:
    """Bytes by role at the highest moment from one edge to the next.

    ``bytes`` has the roles from below, without those that never have any; ``lowest`` is the least
    that was alive at once between two edges. ``highest_ns`` and
    ``highest`` are the moment of the range at which most was alive, and the bytes of each role
    then; ``is_peak`` says that there never was more. ``step`` of ``steps`` is 0 of 0 without a
    training loop.
    """

    memory: str
    edges_ns: Ints
    bytes: dict[str, Floats]
    lowest: Floats
    highest_ns: int
    highest: dict[str, int]
    is_peak: bool
    step: int = 0
    steps: int = 0

    @property
    def total(self) -> int:
        """Bytes that were alive at the highest moment."""
        return sum(self.highest.values())


def roles_over_time(
    view: PlotView, memory: str | None = None, moments: int = MOMENTS
) -> RolesOverTime:
    """Bytes alive by role, in one memory.

    Args:
        view: the recording and the range of time.
        memory: by name; of those with PyTorch's blocks the one with the highest peak when none is
            named.
        moments: how many parts the time is divided into.
    Raises:
        NothingToDraw: PyTorch has nothing in the recording or the memory, or nothing was alive in
            the range.
    """
    path = view.recording.path
    if not view.recording.objects["device"].isin(TORCH_DEVICES).any():
        raise NothingToDraw(
            f"{path} has no memory of PyTorch, and roles come from PyTorch; use --by line."
        )
    known = Known.of(view.recording)
    blocks = known.blocks
    number = _memory(view, blocks, memory)
    mine = np.flatnonzero(blocks.memory == number)
    curve = Curve.of(blocks.size[mine], blocks.born[mine], blocks.died[mine])
    edges = np.unique(view.moments(moments + 1))
    shown = _extreme_in_parts(edges, curve.level, curve, blocks)
    lows = _extreme_in_parts(edges, -curve.level, curve, blocks)
    level = np.where(shown >= 0, curve.level[shown], 0.0)
    if not level.any():
        raise NothingToDraw(f"{path} holds no object with bytes in this time.")
    events = np.where(shown >= 0, curve.at[shown], NOTHING_YET)
    role = known.role[mine].astype(np.int32)
    held = alive_by_group(
        events, blocks.born[mine], blocks.died[mine], blocks.size[mine], role, len(Role)
    )
    areas = {NAMES[of]: held[of] for of, _, _ in BANDS}
    areas[OTHER] = held[Role.NUMPY] + held[Role.OBJECTS]
    best = int(level.argmax())
    event = int(events[best])
    training = known.passes.is_training and view.recording.fold is None
    return RolesOverTime(
        memory=blocks.memories[number],
        edges_ns=edges,
        bytes={name: values for name, values in areas.items() if values.any()},
        lowest=np.where(lows >= 0, curve.level[lows], 0.0),
        highest_ns=max(blocks.time_of(event), view.begin_ns),
        highest={name: int(values[best]) for name, values in areas.items()},
        is_peak=int(level[best]) == curve.highest[0],
        step=known.passes.step_of(event) if training else 0,
        steps=known.passes.count if training else 0,
    )


def _memory(view: PlotView, blocks: Blocks, wanted: str | None) -> int:
    """The number of the memory that is shown.

    Raises:
        NothingToDraw: PyTorch has nothing in it, or nothing at all.
    """
    path = view.recording.path
    several = [n for n in blocks.by_peak if blocks.torch[blocks.memory == n].any()]
    if not several:
        raise NothingToDraw(f"{path} has no block of PyTorch with bytes of its own.")
    if wanted is None:
        return several[0]
    for number in several:
        if blocks.memories[number] == wanted:
            return number
    there = ", ".join(blocks.memories[number] for number in several)
    raise NothingToDraw(f"{path} has no memory of PyTorch in '{wanted}'; --memory may be: {there}.")


def _extreme_in_parts(edges: Ints, value: Floats, curve: Curve, blocks: Blocks) -> Ints:
    """The place in a curve with the largest value between each edge and the next, the first of
    several; what is alive when a part begins counts to it.

    Args:
        value: of each place.
    Returns:
        One place for each part, -1 for a part before anything was alive.
    """
    times = np.where(curve.at < 0, 0, blocks.time_ns[curve.at.clip(min=0)])
    # The last edge belongs to the last part.
    part = np.searchsorted(edges[1:-1], times, side="right")
    inside = np.flatnonzero((times >= edges[0]) & (times <= edges[-1]))
    order = inside[np.lexsort((curve.at[inside], -value[inside], part[inside]))]
    first = np.flatnonzero(np.diff(part[order], prepend=-1))
    before = np.searchsorted(times, edges[:-1], side="left") - 1
    found = before.copy()
    of = part[order[first]]
    better = value[order[first]] > np.where(before[of] >= 0, value[before[of]], 0.0)
    found[of[better]] = order[first][better]
    return found


def draw(figure: SubFigure, view: PlotView, memory: str | None = None) -> None:
    """Draws the areas, the peak, and what a size limit folded as a grey ground."""
    width = style.size_in(figure)[0] - style.LEFT_IN - style.legend_in(figure)
    data = roles_over_time(view, memory, max(1, min(MOMENTS, int(MOMENTS_PER_IN * width))))
    of = "" if data.memory == HOST else f" of {data.memory}"
    (axes,) = style.panels(figure, view.name, f"Tracked memory{of} by role")
    unit_ns = style.time_axis(axes, view.begin_ns, view.end_ns)
    unit = style.bytes_axis(axes, float(data.total), "most alive at once")
    edges = data.edges_ns / unit_ns
    looks = {NAMES[role]: (number, hatch) for role, number, hatch in BANDS}
    handles: list[Any] = []
    names: list[str] = []
    floor = np.zeros(len(edges) - 1)
    for name, values in data.bytes.items():
        number, hatch = looks.get(name, (None, ""))
        grey = style.REST if name == OTHER else style.PALE
        face = grey if number is None else style.colour(number)
        handles.append(
            axes.stairs(
                (floor + values) / unit, edges, baseline=floor / unit, fill=True, linewidth=0.0,
                facecolor=face, edgecolor=style.hatch_colour(face), hatch=hatch,
            )
        )  # fmt: skip
        names.append(name)
        floor = floor + values
    what = "peak" if data.is_peak else "highest"
    step = f" in step {format_count(data.step)}" if data.steps > 1 else ""
    style.moment(axes, data.highest_ns, unit_ns, f"{what} {format_bytes(data.total)}{step}")
    handles, names = handles[::-1], names[::-1]
    sizes = [f"{name} {format_bytes(data.highest[name])}" for name in names]
    if max(map(len, sizes)) <= style.legend_room(axes):
        handles.insert(0, axes.plot([], [], linestyle="")[0])
        names = [f"bytes at the {what}", *sizes]
    if _hides_lows(data, floor):
        handles.append(
            axes.stairs(data.lowest / unit, edges, baseline=None, color=style.INK, linewidth=0.9)
        )
        names.append("least at once")
    style.legend(axes, handles, names)
    horizon = view.recording.horizon_ns
    if horizon > view.begin_ns:
        style.moment(axes, horizon, unit_ns, "before: only what stayed alive")
    style.marks(axes, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)


def _hides_lows(data: RolesOverTime, top: Floats) -> bool:
    """Whether lows need a line, since each part of the time has highs and lows."""
    change = np.abs(np.diff(data.lowest))
    restless = len(change) > 0 and change.mean() > RESTLESS * data.total
    return bool(np.mean(top - data.lowest) > HIDDEN * data.total and not restless)
