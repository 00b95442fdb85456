"""What pools did in a stretch of time, and what they and devices kept at its end.

Covers: an index built once, from which any stretch is answered quickly: hit rates, size classes,
bytes over time. Does not cover: drivers of devices over the whole recording (``tables``).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.events import FIRST_RUNTIME_DEVICE, HOLDER_NUMBER_BITS, HolderKind, Kind
from tlmem.recording.reader import Recording
from tlmem.units import format_bytes, format_count

from .curves import Floats, Grid, RunningSum, edges
from .lanes import NEVER
from .tables import MOST_ROWS, TableData
from .time_axis import moment
from .view import View

Ints = NDArray[np.int64]
KINDS = {
    "hits": int(Kind.POOL_HIT),
    "misses": int(Kind.POOL_MISS),
    "puts": int(Kind.POOL_PUT),
    "drops": int(Kind.POOL_DROP),
    "prunes": int(Kind.POOL_PRUNE),
}
KEPT = {"puts": 1, "hits": -1, "prunes": -1}
"""How many objects more a pool keeps after such an event."""


class PoolIndex:
    """The pools and devices of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._pool_count = len(recording.pools)
        self._shown = _busiest(recording.pools)
        self._is_pool = self._shown["pool"].to_numpy() >= 0
        holders = recording.holders
        mine = holders["kind"].to_numpy() == int(HolderKind.POOL)
        mine &= holders["object"].to_numpy() >= 0
        held = holders[mine]
        sizes = recording.objects["size_bytes"].reindex(held["object"])
        self._listed = sizes.notna().to_numpy()
        self._size = sizes.fillna(0).to_numpy(np.int64)
        self._begin = held["begin_ns"].to_numpy(np.int64)
        end = held["end_ns"].to_numpy(np.int64)
        self._end = np.where(end < 0, NEVER, end)
        self._number = held["number"].to_numpy(np.int64)
        self._holder, self._names = pd.factorize(held["holder"])

    def prepare(self) -> None:
        """Computes what any stretch of time is answered from."""
        _ = self._steps, self._memory, self._events, self._recording.devices

    # ---- over time ----

    def pooled(self, view: View, width: int) -> Floats:
        """Bytes of the objects that lay in pools, at the end of each column."""
        return self._steps.at(edges(view, width))

    def unused(self, view: View, width: int) -> Floats:
        """Bytes that devices had been handed out and no live object used, likewise."""
        return self._memory.at(edges(view, width))

    @cached_property
    def _steps(self) -> RunningSum:
        ended = self._end != NEVER
        times = np.concatenate([self._begin, self._end[ended]])
        return RunningSum(times, np.concatenate([self._size, -self._size[ended]]))

    @cached_property
    def _memory(self) -> Grid:
        def unused(times: Ints) -> Floats:
            memory = self._recording.device_memory(times)
            rest = memory["handed_out"].to_numpy(np.float64) - memory["objects"].to_numpy()
            return np.nan_to_num(rest).clip(min=0)

        return Grid(unused, int(self._recording.seconds * 1e9))

    # ---- tables ----

    def table(self, view: View) -> TableData:
        """Pools of objects and freed buffers of devices: what they did, and keep at the end."""
        heads = ("pool", "hit rate", *KINDS, "kept", "kept bytes", "reserved")
        rows = list(self._rows(view))
        note = "" if view.is_whole or not rows else "in this stretch"
        horizon_ns = self._recording.horizon_ns
        if rows and view.start_ns < horizon_ns:
            note += f"{'; ' if note else ''}before {moment(horizon_ns, 1e7)} nothing is counted"
        if len(rows) < self._pool_count:
            busiest = f"the {format_count(len(rows))} busiest of {format_count(self._pool_count)}"
            note += f"{'; ' if note else ''}{busiest} pools"
        return TableData(heads, rows, heads[1:], note)

    def _rows(self, view: View) -> list[tuple[str, ...]]:
        if view.is_whole or not len(self._shown):
            table = self._shown.to_dict("records")
            kinds = ("kept_count", "kept_bytes", "reserved_bytes")
            return [
                _row(str(row["name"]), [row[kind] for kind in KINDS], *(row[k] for k in kinds))
                for row in table
            ]
        which, kind, size, times = self._events
        first = int(np.searchsorted(times, view.start_ns, side="left"))
        last = int(np.searchsorted(times, view.stop_ns, side="right"))
        count = len(self._shown)

        def sums(number: int, begin: int, weights: Floats | None = None) -> NDArray[Any]:
            """Of each pool, its events of a kind up to the end of the stretch, or their bytes."""
            mine = begin + np.flatnonzero(kind[begin:last] == number)
            return np.bincount(which[mine], None if weights is None else weights[mine], count)

        did = np.stack([sums(number, first) for number in KINDS.values()], axis=1)
        reserved = sums(int(Kind.POOL_RESERVE), 0, size)
        kept, bytes_ = np.zeros(count, np.int64), reserved.astype(np.float64)
        for word, sign in KEPT.items():
            kept += sign * sums(KINDS[word], 0)
            bytes_ += sign * sums(KINDS[word], 0, size)
        inside = np.flatnonzero(self._kept_at(view))
        row = self._row_of(self._number[inside], "pool")
        listed = row >= 0
        in_pools = np.bincount(row[listed], self._size[inside[listed]], count)
        bytes_ = np.where(self._is_pool, in_pools, bytes_)
        return [
            _row(str(name), did[at].tolist(), int(kept[at]), int(bytes_[at]), int(reserved[at]))
            for at, name in enumerate(self._shown["name"].tolist())
        ]

    def _row_of(self, numbers: Ints, column: str) -> Ints:
        """The row of each pool, or of the buffers of each device, by its number; else -1."""
        rows = np.flatnonzero(self._is_pool == (column == "pool"))
        found = pd.Index(self._shown[column].to_numpy(np.int64)[rows]).get_indexer(numbers)
        return np.append(rows, -1)[found]

    @cached_property
    def _events(self) -> tuple[Ints, Ints, Floats, Ints]:
        """Events of pools in order: row of the table, kind, bytes of those of devices, time."""
        events = self._recording.events
        at = np.flatnonzero(events["kind"].between(int(Kind.POOL_HIT), int(Kind.POOL_RESERVE)))
        table = events.iloc[at]
        arg, kind = table["arg"].to_numpy(np.uint64), table["kind"].to_numpy(np.int64)
        owner = (arg >> np.uint64(HOLDER_NUMBER_BITS)).astype(np.int64)
        number = (arg & np.uint64((1 << HOLDER_NUMBER_BITS) - 1)).astype(np.int64)
        device = table["device"].to_numpy(np.int64)
        buffers = (owner == 0) & (device >= FIRST_RUNTIME_DEVICE)
        buffers &= table["object"].to_numpy() == 0
        pooled = owner == int(HolderKind.POOL)
        which = np.where(pooled, self._row_of(number, "pool"), -1)
        which = np.where(buffers, self._row_of(device, "device"), which)
        known = which >= 0
        size = np.where(owner == 0, number, 0).astype(np.float64)
        times = table["time_ns"].to_numpy(np.int64)
        return which[known], kind[known], size[known], times[known]

    def size_classes(self, view: View) -> TableData:
        """What pools keep at the end of the stretch, by size."""
        kept = np.flatnonzero(self._kept_at(view) & self._listed)
        table = pd.DataFrame({"pool": self._holder[kept], "size": self._size[kept]})
        counts = table.groupby(["pool", "size"], sort=False).size().rename("count").reset_index()
        counts["name"] = self._names.to_numpy(object)[counts["pool"]] if len(counts) else ""
        counts = pd.concat([counts, self._buffers(view)], ignore_index=True)
        counts = counts.assign(bytes=counts["size"] * counts["count"])
        counts = counts.sort_values("bytes", ascending=False, kind="stable")[:MOST_ROWS]
        rows = [
            (
                str(row["name"]),
                format_bytes(row["size"]),
                format_count(row["count"]),
                format_bytes(row["bytes"]),
            )
            for row in counts.to_dict("records")
        ]
        return TableData(
            ("kept in", "size", "objects", "bytes"), rows, ("size", "objects", "bytes")
        )

    def _buffers(self, view: View) -> pd.DataFrame:
        """Freed buffers that devices keep at the end of the stretch: name, size, count."""
        which, kind, size, times = self._events
        last = int(np.searchsorted(times, view.stop_ns, side="right"))
        mine = np.flatnonzero(~self._is_pool[which[:last]])
        change = np.zeros(256, np.int64)
        for word, sign in KEPT.items():
            change[KINDS[word]] = sign
        table = pd.DataFrame(
            {
                "name": self._shown["name"].to_numpy(object)[which[mine]],
                "size": size[mine].astype(np.int64),
                "count": change[kind[mine]],
            }
        )
        sums = table.groupby(["name", "size"], sort=False)["count"].sum().reset_index()
        return sums[sums["count"] > 0]

    def _kept_at(self, view: View) -> NDArray[np.bool_]:
        """Which objects lie in a pool at the end of the stretch."""
        if view.is_whole:
            return self._end == NEVER
        return (self._begin <= view.stop_ns) & (self._end > view.stop_ns)


def _busiest(pools: pd.DataFrame) -> pd.DataFrame:
    """As many pools as a table shows, those with the most events, in the order of the table."""
    if len(pools) <= MOST_ROWS:
        return pools
    did = pools[list(KINDS)].sum(axis=1).to_numpy()
    return pools.iloc[np.sort(np.argsort(-did, kind="stable")[:MOST_ROWS])]


def _row(
    name: str, counts: list[int], kept_count: int, kept_bytes: float, reserved: float
) -> tuple[str, ...]:
    requests = counts[0] + counts[1]
    return (
        name,
        f"{100 * counts[0] / requests:.1f}%" if requests else "–",
        *map(format_count, counts),
        format_count(kept_count),
        format_bytes(kept_bytes),
        format_bytes(reserved),
    )
