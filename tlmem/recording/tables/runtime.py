"""Tables of what the runtime recorded: holders, scopes, misuses, pools, devices.

Covers: one function for each of these tables of ``schema.SCHEMA``.
Does not cover: tables of every recording (``memory``), how holders are paired (``ledger``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from tlmem.events import (
    DEVICE_NAMES,
    FIRST_RUNTIME_DEVICE,
    HOLDER_NUMBER_BITS,
    MISUSE_NAMES,
    HolderKind,
    Kind,
    Metric,
)
from tlmem.recording.format.checkpoint import Checkpoint
from tlmem.recording.format.limits import LARGEST_SIZE
from tlmem.recording.format.pairing import Known, Pairing, numbers_of
from tlmem.recording.format.timeline import Timeline
from tlmem.recording.tables.holder_names import NUMBER_MASK, HolderNames, each, longest_label
from tlmem.recording.tables.ledger import Ledger, lives_of
from tlmem.recording.tables.schema import frame

ToNs = Callable[[np.ndarray], np.ndarray]
_BITS = np.uint64(HOLDER_NUMBER_BITS)
_POOL_KINDS = {
    "hits": Kind.POOL_HIT,
    "misses": Kind.POOL_MISS,
    "puts": Kind.POOL_PUT,
    "drops": Kind.POOL_DROP,
    "prunes": Kind.POOL_PRUNE,
}
_KEPT_CHANGE = {"puts": 1, "hits": -1, "prunes": -1}


def holders_table(
    timeline: Timeline, pairing: Pairing, ledger: Ledger, names: HolderNames, to_ns: ToNs
) -> pd.DataFrame:
    """The ledger: one row for each (object, holder)."""
    held = ledger.end < 0
    return frame(
        "holders",
        {
            "object": numbers_of(pairing, ledger.row),
            "address": timeline.object[ledger.begin],
            "kind": ledger.holder >> _BITS,
            "number": ledger.holder & NUMBER_MASK,
            "holder": names.texts(ledger.holder),
            "begin_ns": to_ns(timeline.ticks[ledger.begin]),
            "end_ns": np.where(held, -1, to_ns(timeline.ticks[ledger.end])),
            "begin_site": timeline.site[ledger.begin],
            "end_site": np.where(held, np.uint32(0), timeline.site[ledger.end]),
            "ended_by": ledger.ended_by,
        },
    )


def scopes_table(
    timeline: Timeline, ledger: Ledger, labels: dict[int, str], to_ns: ToNs
) -> pd.DataFrame:
    """The scopes and frames that were entered, or left, in what was read."""
    longest = longest_label(len(timeline))
    enters = np.flatnonzero(timeline.kind == Kind.SCOPE_ENTER)
    scope = timeline.object[enters]
    exits, frames = (_find(timeline, kind, scope) for kind in (Kind.SCOPE_EXIT, Kind.FRAME_ENTER))
    ended, is_frame = exits >= 0, frames >= 0
    owned = ledger.holder >> _BITS == HolderKind.SCOPE
    owner, ended_by = ledger.holder[owned] & NUMBER_MASK, ledger.ended_by[owned]

    def count(chosen: np.ndarray) -> np.ndarray:
        return _counts(scope, owner[chosen])

    return frame(
        "scopes",
        {
            "scope": scope,
            "label": each(timeline.arg[enters], lambda label: labels.get(label, "")[:longest]),
            "thread": timeline.thread[enters],
            "parent": _parents(timeline),
            "depth": timeline.count[enters],
            "is_frame": is_frame,
            "slots": np.where(is_frame, timeline.arg[frames], np.uint64(0)),
            "enter_ns": to_ns(timeline.ticks[enters]),
            "exit_ns": np.where(ended, to_ns(timeline.ticks[exits]), -1),
            "enter_site": timeline.site[enters],
            "exit_site": np.where(ended, timeline.site[exits], np.uint32(0)),
            "registered": count(np.ones(len(owner), bool)),
            "promoted": count(np.isin(ended_by, (Kind.UNREGISTER, Kind.PROMOTE))),
            "escaped": count(ended_by == Kind.ESCAPE),
            "released": count(np.isin(ended_by, (Kind.RELEASE, Kind.FREE))),
            "freed": np.where(ended, timeline.arg[exits], np.uint64(0)),
        },
    )


def _find(timeline: Timeline, kind: Kind, scope: np.ndarray) -> np.ndarray:
    """The position of the event of this kind about each scope, or -1."""
    at = np.flatnonzero(timeline.kind == kind)
    if not len(at):
        return np.full(len(scope), -1, np.int64)
    at = at[np.argsort(timeline.object[at], kind="stable")]
    found = np.searchsorted(timeline.object[at], scope).clip(max=len(at) - 1)
    return np.where(timeline.object[at[found]] == scope, at[found], -1)


def _counts(scope: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """How often each scope is among the owners."""
    if not len(scope):
        return np.empty(0, np.int64)
    order = np.argsort(scope, kind="stable")
    at = np.searchsorted(scope[order], owner).clip(max=len(scope) - 1)
    at = at[scope[order][at] == owner]
    counts = np.empty(len(scope), np.int64)
    counts[order] = np.bincount(at, minlength=len(scope))
    return counts


def _parents(timeline: Timeline) -> list[int]:
    """The scope around each scope, in order of entry: the one that is one level above it.

    An event names the depth and the thread, not the task: with several candidates it is not known.
    """
    at = np.flatnonzero((timeline.kind == Kind.SCOPE_ENTER) | (timeline.kind == Kind.SCOPE_EXIT))
    entered: dict[tuple[int, int], set[int]] = {}
    place: dict[int, tuple[int, int]] = {}
    parents = []
    columns = (timeline.kind, timeline.object, timeline.thread, timeline.count)
    for kind, scope, thread, depth in zip(*(c[at].tolist() for c in columns), strict=True):
        if kind == Kind.SCOPE_EXIT:
            entered.get(place.pop(scope, (0, 0)), set()).discard(scope)
            continue
        above = entered.get((thread, depth - 1), ())
        parents.append(0 if depth == 1 else next(iter(above)) if len(above) == 1 else -1)
        place[scope] = (thread, depth)
        entered.setdefault((thread, depth), set()).add(scope)
    return parents


def misuses_table(
    timeline: Timeline,
    pairing: Pairing,
    known: Known,
    checkpoint: Checkpoint,
    names: HolderNames,
    to_ns: ToNs,
) -> pd.DataFrame:
    """What the program did wrong, by the runtime's own account."""
    old = checkpoint.marks[checkpoint.marks["kind"] == Kind.MISUSE]
    at = np.flatnonzero(timeline.kind == Kind.MISUSE)

    def both(name: str) -> np.ndarray:
        return np.concatenate([old[name], getattr(timeline, name)[at]])

    codes, holders = both("count").tolist(), both("arg")
    holder = names.texts(holders)
    holder[holders == 0] = ""
    return frame(
        "misuses",
        {
            "time_ns": to_ns(both("ticks")),
            "thread": np.concatenate([np.zeros(len(old), np.int32), timeline.thread[at]]),
            "misuse": np.array([MISUSE_NAMES.get(c, f"misuse-{c}") for c in codes], object),
            "object": np.concatenate(
                [np.full(len(old), -1), _objects_at(timeline, pairing, known, at)]
            ),
            "address": both("object"),
            "device": both("device"),
            "holder": holder,
            "site": both("site"),
        },
    )


def _objects_at(timeline: Timeline, pairing: Pairing, known: Known, at: np.ndarray) -> np.ndarray:
    """The number of the object that each event speaks of, which may have been freed before."""
    if not len(at):
        return np.empty(0, np.int64)
    spoken_of = np.unique(timeline.object[at])
    begins = pairing.begins[np.isin(timeline.object[pairing.begins], spoken_of)]
    lives = lives_of(timeline, pairing, known, np.union1d(begins, at), frees_end=False)
    row = np.full(len(timeline), -1, np.int64)
    seen = lives.position >= 0
    row[lives.position[seen]] = lives.row[lives.life[seen]]
    return numbers_of(pairing, row[at])


def held_at(
    timeline: Timeline,
    pairing: Pairing,
    ledger: Ledger,
    names: HolderNames,
    to_ns: ToNs,
    objects: np.ndarray,
    time_ns: int,
) -> pd.DataFrame:
    """Who held which of these objects at a time: object, kind and text of the holder, site."""
    wanted = np.isin(pairing.number, objects)
    rows = np.flatnonzero(wanted[ledger.row] & (ledger.row >= 0)) if len(wanted) else ledger.row[:0]
    begin, end = ledger.begin[rows], ledger.end[rows]
    held = (to_ns(timeline.ticks[begin]) <= time_ns) & (
        (end < 0) | (to_ns(timeline.ticks[end]) > time_ns)
    )
    rows = rows[held]
    return pd.DataFrame(
        {
            "object": pairing.number[ledger.row[rows]],
            "kind": (ledger.holder[rows] >> _BITS).astype(np.uint8),
            "holder": names.texts(ledger.holder[rows], numbered=False),
            "site": timeline.site[ledger.begin[rows]],
        }
    )


def pools_table(
    timeline: Timeline, pairing: Pairing, ledger: Ledger, names: HolderNames
) -> pd.DataFrame:
    """Pools of objects, then what devices keep of freed buffers."""
    rows = [*_object_pools(timeline, pairing, ledger, names), *_buffers(timeline)]
    columns = ["name", "pool", "device", *_POOL_KINDS, "reserved_bytes", "kept_count", "kept_bytes"]
    table = {name: [row.get(name, 0) for row in rows] for name in columns}
    requests = np.add(table["hits"], table["misses"], dtype=np.float64)
    table["hit_rate"] = np.divide(
        table["hits"], requests, out=np.full(len(rows), np.nan), where=requests > 0
    )
    return frame("pools", table)


def _object_pools(
    timeline: Timeline, pairing: Pairing, ledger: Ledger, names: HolderNames
) -> Iterator[dict[str, int | str]]:
    at = np.flatnonzero((timeline.kind >= Kind.POOL_HIT) & (timeline.kind <= Kind.POOL_PRUNE))
    at = at[timeline.arg[at] >> _BITS == HolderKind.POOL]
    pools, which = np.unique(timeline.arg[at] & NUMBER_MASK, return_inverse=True)
    if not len(pools):
        return
    counts = {
        name: np.bincount(which[timeline.kind[at] == kind], minlength=len(pools)).tolist()
        for name, kind in _POOL_KINDS.items()
    }
    holds = (ledger.end < 0) & (ledger.row >= 0) & (ledger.holder >> _BITS == HolderKind.POOL)
    keeper, size = ledger.holder[holds] & NUMBER_MASK, pairing.size[ledger.row[holds]]
    place = np.searchsorted(pools, keeper).clip(max=len(pools) - 1)
    kept = np.zeros(len(pools), np.int64)
    np.add.at(kept, place[pools[place] == keeper], size[pools[place] == keeper])
    for row_number, number in enumerate(pools.tolist()):
        row = {name: counts[name][row_number] for name in _POOL_KINDS}
        yield {
            **row,
            "name": names.pool(number),
            "pool": number,
            "kept_count": sum(sign * row[name] for name, sign in _KEPT_CHANGE.items()),
            "kept_bytes": int(kept[row_number]),
        }


def _buffers(timeline: Timeline) -> Iterator[dict[str, int | str]]:
    at = np.flatnonzero((timeline.kind >= Kind.POOL_HIT) & (timeline.kind <= Kind.POOL_RESERVE))
    at = at[(timeline.device[at] >= FIRST_RUNTIME_DEVICE) & (timeline.object[at] == 0)]
    at = at[timeline.arg[at] <= LARGEST_SIZE]
    device, kind, size = timeline.device[at], timeline.kind[at], timeline.arg[at].view(np.int64)
    for number in np.unique(device).tolist():
        chosen = device == number
        counts = np.bincount(kind[chosen], minlength=256)
        row = {name: int(counts[kind]) for name, kind in _POOL_KINDS.items()}
        total = {k: int(size[chosen & (kind == k)].sum()) for k in range(Kind.POOL_HIT, 22)}
        kept = sum(sign * total[_POOL_KINDS[name]] for name, sign in _KEPT_CHANGE.items())
        yield {
            **row,
            "name": f"buffers of {DEVICE_NAMES.get(number, f'device {number}')}",
            "pool": -1,
            "device": number,
            "reserved_bytes": total[Kind.POOL_RESERVE],
            "kept_count": sum(sign * row[name] for name, sign in _KEPT_CHANGE.items()),
            "kept_bytes": kept + total[Kind.POOL_RESERVE],
        }


def devices_table(timeline: Timeline) -> pd.DataFrame:
    """What the drivers of devices handed out and got back."""
    driver = timeline.arg[(timeline.kind == Kind.SAMPLE) & (timeline.object == Metric.DRIVER)]
    at = np.flatnonzero((timeline.kind == Kind.DEVICE_ALLOC) | (timeline.kind == Kind.DEVICE_FREE))
    device, size = timeline.device[at], timeline.arg[at]
    number, which = np.unique(device, return_inverse=True)
    columns: dict[str, np.ndarray] = {}
    for word, kind in (("alloc", Kind.DEVICE_ALLOC), ("free", Kind.DEVICE_FREE)):
        chosen = timeline.kind[at] == kind
        row, weight = which.reshape(-1)[chosen], size[chosen]
        columns[f"{word}_count"] = np.bincount(row, minlength=len(number))
        columns[f"{word}_bytes"] = np.bincount(row, weight, len(number)).astype(np.int64)
    return frame(
        "devices",
        {
            **columns,
            "name": [DEVICE_NAMES.get(n, f"device {n}") for n in number.tolist()],
            "device": number,
            "live_count": columns["alloc_count"] - columns["free_count"],
            "live_bytes": columns["alloc_bytes"] - columns["free_bytes"],
            "driver_bytes": np.full(len(number), driver[-1] if len(driver) else 0, np.int64),
        },
    )
