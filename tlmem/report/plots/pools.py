"""What did pools keep, and did it serve? Bytes kept over time, and requests served or not.

Covers: pools of objects and freed buffers of devices, and their picture.
Does not cover: what the rest of the memory was; see ``memory``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.lifetimes import alive_at
from tlmem.events import HOLDER_NUMBER_BITS, HolderKind, Kind
from tlmem.report.plots import style
from tlmem.report.plots.plot_data import NEVER, Floats, Ints, NothingToDraw, PlotView

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import SubFigure

MOMENTS = 400
MOST_POOLS = 6
CHANGE = {Kind.POOL_PUT: 1, Kind.POOL_RESERVE: 1, Kind.POOL_HIT: -1, Kind.POOL_PRUNE: -1}
"""What an event about freed buffers adds to the bytes that are kept."""


@dataclass(frozen=True)
class PoolOverTime:
    """One pool at each moment: bytes that it keeps, requests so far that it served and did not."""

    name: str
    time_ns: Ints
    kept_bytes: Floats
    hits: Ints
    misses: Ints


def pools_over_time(view: PlotView, moments: int = MOMENTS) -> list[PoolOverTime]:
    """The pools that were used most, by requests and puts, first; at most ``MOST_POOLS``.

    Raises:
        NothingToDraw: no pool was used.
    """
    table = view.recording.pools
    if len(table) == 0:
        raise NothingToDraw(
            f"{view.recording.path} holds no event of a pool; choose another --kind."
        )
    used = (table["hits"] + table["misses"] + table["puts"]).to_numpy(np.int64)
    chosen = table.iloc[np.argsort(-used, kind="stable")[:MOST_POOLS]]
    times = view.moments(moments)
    events = view.recording.events
    events = events[events["kind"].between(int(Kind.POOL_HIT), int(Kind.POOL_RESERVE))]
    return [one_pool(view, events, row, times) for row in chosen.to_dict("records")]


def one_pool(view: PlotView, events: pd.DataFrame, pool: dict, times_ns: Ints) -> PoolOverTime:
    """One row of ``pools`` over time."""
    arg = events["arg"].to_numpy(np.uint64)
    holder = arg >> np.uint64(HOLDER_NUMBER_BITS)
    if pool["pool"] >= 0:
        number = arg & np.uint64((1 << HOLDER_NUMBER_BITS) - 1)
        mine = (holder == HolderKind.POOL) & (number == pool["pool"])
        kept = kept_objects(view, pool["pool"], times_ns)
    else:
        mine = (events["device"].to_numpy() == pool["device"]) & (holder == 0)
        kept = kept_buffers(events[mine], times_ns)
    time_ns = events["time_ns"].to_numpy(np.int64)[mine]
    kind = events["kind"].to_numpy()[mine]

    def so_far(which: Kind) -> Ints:
        return np.searchsorted(time_ns[kind == which], times_ns, side="right").astype(np.int64)

    return PoolOverTime(
        str(pool["name"]), times_ns, kept, so_far(Kind.POOL_HIT), so_far(Kind.POOL_MISS)
    )


def kept_objects(view: PlotView, number: int, times_ns: Ints) -> Floats:
    """Bytes of the objects that a pool holds at each time."""
    held = view.recording.holders
    held = held[(held["kind"] == int(HolderKind.POOL)) & (held["number"] == number)]
    held = held[held["object"] >= 0]
    size = view.recording.objects["size_bytes"].reindex(held["object"]).fillna(0).to_numpy()
    end = held["end_ns"].to_numpy(np.int64)
    return alive_at(
        times_ns,
        held["begin_ns"].to_numpy(np.int64),
        np.where(end < 0, NEVER, end),
        size,
    )


def kept_buffers(events: pd.DataFrame, times_ns: Ints) -> Floats:
    """Bytes of the freed buffers that a device keeps at each time, from its events."""
    kind = events["kind"].to_numpy()
    sign = np.select([kind == int(which) for which in CHANGE], list(CHANGE.values()), 0)
    kept = np.concatenate(([0.0], np.cumsum(sign * events["arg"].to_numpy(np.float64))))
    return kept[np.searchsorted(events["time_ns"].to_numpy(np.int64), times_ns, side="right")]


def draw(figure: SubFigure, view: PlotView) -> None:
    """Draws kept bytes as lines above, and below what was served and what was not."""
    pools = pools_over_time(view)
    title = "Pools: what they keep, and requests they served"
    above, below = style.panels(figure, view.name, title, (3, 2))
    unit_ns = style.time_axis(below, view.begin_ns, view.end_ns)
    unit = style.bytes_axis(above, max(float(pool.kept_bytes.max()) for pool in pools), "kept")
    most = max(max(int(pool.hits[-1]), int(pool.misses[-1])) for pool in pools)
    many, words = style.count_scale(most)
    handles, labels = [], []
    for number, pool in enumerate(pools):
        look = {"color": style.line_colour(number), "linestyle": style.line(number)}
        time = pool.time_ns / unit_ns
        handles += above.plot(time, pool.kept_bytes / unit, drawstyle="steps-post", **look)
        labels.append(pool.name)
        below.plot(time, pool.hits / many, **look)
        below.plot(
            time, pool.misses / many, marker="x", markevery=max(1, len(time) // 12), markersize=4,
            linewidth=0.8, **look,
        )  # fmt: skip
    style.legend(above, handles, labels)
    below.set_ylabel("requests so far" + (f"\n({words})" if words else ""))
    below.set_ylim(bottom=0)
    style.grid(below)
    hits = below.plot([], [], color=style.INK)
    misses = below.plot([], [], color=style.INK, marker="x", markersize=4, linewidth=0.8)
    style.legend(below, [*hits, *misses], ["served (hit)", "not served (miss)"])
    style.marks(above, view.recording.marks, view.begin_ns, view.end_ns, unit_ns)
