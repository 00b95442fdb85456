"""What pools did in a stretch of time, and what they and devices kept at its end.

Covers: an index built once, from which any stretch is answered quickly: hit rates, size classes,
bytes over time. Does not cover: drivers of devices over the whole recording (``tables``).
"""

from __future__ import annotations

from functools import cached_property

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
_NUMBERS = 64
"""More than there are kinds of events."""


class PoolIndex:
    """The pools and devices of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._pools = recording.pools
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
        return TableData(heads, rows, heads[1:], note)

    def _rows(self, view: View) -> list[tuple[str, ...]]:
        names = self._pools["name"].tolist()
        if view.is_whole or not names:
            table = self._pools.to_dict("records")
            kinds = ("kept_count", "kept_bytes", "reserved_bytes")
            return [
                _row(str(row["name"]), [row[kind] for kind in KINDS], *(row[k] for k in kinds))
                for row in table
            ]
        which, kind, size, times = self._events
        first, last = np.searchsorted(times, [view.start_ns, view.stop_ns], side="left")
        last = int(np.searchsorted(times, view.stop_ns, side="right"))
        code, many = which * _NUMBERS + kind, len(names) * _NUMBERS
        shape = (len(names), _NUMBERS)
        did = np.bincount(code[first:last], minlength=many).reshape(shape)
        so_far = np.bincount(code[:last], minlength=many).reshape(shape)
        sums = np.bincount(code[:last], size[:last], many).reshape(shape)
        rows = []
        for at, (name, pool) in enumerate(zip(names, self._pools["pool"].tolist(), strict=True)):
            kept = sum(sign * so_far[at, KINDS[word]] for word, sign in KEPT.items())
            reserved = sums[at, Kind.POOL_RESERVE]
            bytes_ = reserved + sum(sign * sums[at, KINDS[word]] for word, sign in KEPT.items())
            if pool >= 0:
                bytes_ = self._size[self._kept_at(view) & (self._number == pool)].sum()
            counts = [int(did[at, number]) for number in KINDS.values()]
            rows.append(_row(str(name), counts, int(kept), int(bytes_), int(reserved)))
        return rows

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
        which = np.full(len(at), -1, np.int64)
        for row, pool in enumerate(self._pools.to_dict("records")):
            if pool["pool"] >= 0:
                mine = (owner == int(HolderKind.POOL)) & (number == pool["pool"])
            else:
                mine = buffers & (device == pool["device"])
            which[mine] = row
        known = which >= 0
        size = np.where(owner == 0, number, 0).astype(np.float64)
        times = table["time_ns"].to_numpy(np.int64)
        return which[known], kind[known], size[known], times[known]

    def size_classes(self, view: View) -> TableData:
        """What pools keep at the end of the stretch, by size."""
        kept = np.flatnonzero(self._kept_at(view) & self._listed)
        table = pd.DataFrame({"pool": self._holder[kept], "size": self._size[kept]})
        counts = table.groupby(["pool", "size"], sort=False).size().rename("count").reset_index()
        counts = counts.assign(bytes=counts["size"] * counts["count"])
        counts = counts.sort_values("bytes", ascending=False, kind="stable")[:MOST_ROWS]
        rows = [
            (
                str(self._names[row["pool"]]),
                format_bytes(row["size"]),
                format_count(row["count"]),
                format_bytes(row["bytes"]),
            )
            for row in counts.to_dict("records")
        ]
        return TableData(
            ("kept in", "size", "objects", "bytes"), rows, ("size", "objects", "bytes")
        )

    def _kept_at(self, view: View) -> NDArray[np.bool_]:
        """Which objects lie in a pool at the end of the stretch."""
        if view.is_whole:
            return self._end == NEVER
        return (self._begin <= view.stop_ns) & (self._end > view.stop_ns)


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
