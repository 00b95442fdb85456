"""Tables of what tapes recorded: ops, backward passes, what was held for them over time.

Covers: the tables ``ops`` and ``passes`` of ``schema.SCHEMA``, memory that tapes held.
Does not cover: who else held it (``ledger``), names of holders (``holder_names``).
See also: docs/format.md, "Tapes". What a tape holds is read from the ledger, never from the events
of the tape itself: so it agrees with the counts of the objects.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tlmem.events import FIRST_TAPE_OP, HOLDER_NUMBER_BITS, TAPE_OP_BITS, HolderKind, Kind
from tlmem.recording.format.grouping import group_order
from tlmem.recording.format.pairing import Pairing
from tlmem.recording.format.timeline import Timeline
from tlmem.recording.tables.holder_names import NUMBER_MASK, SEQUENCE_MASK, HolderNames
from tlmem.recording.tables.ledger import Ledger
from tlmem.recording.tables.schema import frame

ToNs = Callable[[np.ndarray], np.ndarray]
_KIND_BITS, _OP_BITS = np.uint64(HOLDER_NUMBER_BITS), np.uint64(TAPE_OP_BITS)
_UNDER_WAY, _GRADIENT = 1, 2


def ops_table(
    timeline: Timeline, pairing: Pairing, ledger: Ledger, names: HolderNames
) -> pd.DataFrame:
    """Ops that were recorded, and what tapes held for them."""
    made = timeline.arg[timeline.kind == Kind.TAPE_RECORD] >> _OP_BITS
    rows, of = _held_by_tapes(ledger)
    size, held = _sizes(pairing, ledger.row[rows]), ledger.end[rows] < 0
    number, which = np.unique(np.concatenate([made.astype(np.int64), of]), return_inverse=True)
    recorded, saved = np.split(which.reshape(-1), [len(made)])
    count = len(number)

    def total(row: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(row, values, minlength=count).astype(np.int64)

    return frame(
        "ops",
        {
            "op": number,
            "name": [names.op(op) for op in number.tolist()],
            "records": total(recorded),
            "saves": total(saved),
            "saved_bytes": total(saved, size),
            "held_count": total(saved[held]),
            "held_bytes": total(saved[held], size[held]),
        },
    )


def passes_table(timeline: Timeline, pairing: Pairing, ledger: Ledger, to_ns: ToNs) -> pd.DataFrame:
    """Backward passes with what tapes held for rules at their begin and end."""
    begins = np.flatnonzero(timeline.kind == Kind.BACKWARD_BEGIN)
    ends = _ends(timeline, begins)
    ended = ends >= 0
    rows, op = _held_by_tapes(ledger)
    at, _, held = _over_time(pairing, ledger, rows[op >= FIRST_TAPE_OP])
    recorded = np.searchsorted(np.flatnonzero(timeline.kind == Kind.TAPE_RECORD), begins)
    return frame(
        "passes",
        {
            "root": timeline.object[begins],
            "sequence": timeline.arg[begins] & SEQUENCE_MASK,
            "thread": timeline.thread[begins],
            "begin_ns": to_ns(timeline.ticks[begins]),
            "end_ns": np.where(ended, to_ns(timeline.ticks[ends]), -1),
            "site": timeline.site[begins],
            "rules": np.where(ended, timeline.arg[ends], np.uint64(0)),
            "status": np.where(ended, timeline.count[ends].astype(np.int32), np.int32(-1)),
            "recorded": np.diff(recorded, prepend=0),
            "saved_bytes": held[np.searchsorted(at, begins)],
            "left_bytes": np.where(ended, held[np.searchsorted(at, ends)], -1),
        },
    )


def tape_memory(
    timeline: Timeline,
    pairing: Pairing,
    ledger: Ledger,
    times_ns: np.ndarray,
    horizon_ns: int,
    to_ns: ToNs,
) -> pd.DataFrame:
    """What tapes held at each of some times, that time included; NaN where it was folded."""
    rows, op = _held_by_tapes(ledger)
    columns: dict[str, np.ndarray] = {}
    for name, chosen in (
        ("saved", op >= FIRST_TAPE_OP),
        ("grad", (op == _UNDER_WAY) | (op == _GRADIENT)),
    ):
        at, count, held = _over_time(pairing, ledger, rows[chosen])
        step = np.searchsorted(to_ns(timeline.ticks[at]), times_ns, side="right")
        columns |= {f"{name}_count": count[step], f"{name}_bytes": held[step]}
    known = times_ns >= horizon_ns
    return pd.DataFrame({name: np.where(known, of, np.nan) for name, of in columns.items()})


def _held_by_tapes(ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the ledger in which a tape holds a known object, and for which op."""
    rows = np.flatnonzero((ledger.holder >> _KIND_BITS == HolderKind.TAPE) & (ledger.row >= 0))
    return rows, ((ledger.holder[rows] & NUMBER_MASK) >> _OP_BITS).astype(np.int64)


def _sizes(pairing: Pairing, rows: np.ndarray) -> np.ndarray:
    """Bytes of objects."""
    return pairing.size[rows].astype(np.int64)


def _ends(timeline: Timeline, begins: np.ndarray) -> np.ndarray:
    """The position at which each pass ended, or -1: the next event of its root, if that is one."""
    at = np.flatnonzero(
        (timeline.kind == Kind.BACKWARD_BEGIN) | (timeline.kind == Kind.BACKWARD_END)
    )
    order, same = group_order(timeline.object[at])
    ends = timeline.kind[at][order] == Kind.BACKWARD_END
    found = np.full(len(timeline), -1, np.int64)
    if len(order):
        followed = np.flatnonzero(same & ~ends[:-1] & ends[1:])
        found[at[order[followed]]] = at[order[followed + 1]]
    return found[begins]


def _over_time(
    pairing: Pairing, ledger: Ledger, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Objects that some rows of the ledger hold, each once however often it is held.

    Returns:
        Positions in the timeline at which that changes, ascending, and how many objects and bytes
        there are before the first of them and after each: one value more than positions.
    """
    ended = rows[ledger.end[rows] >= 0]
    position = np.concatenate([ledger.begin[rows], ledger.end[ended]])
    thing = ledger.row[np.concatenate([rows, ended])]
    change = np.repeat(np.array([1, -1]), [len(rows), len(ended)])
    order = np.lexsort((position, thing))
    position, thing, change = position[order], thing[order], change[order]
    # No object has a holder before its first row, so one sum runs through all of them.
    holders = np.cumsum(change)
    first = np.flatnonzero(np.diff(thing, prepend=-2))
    if len(first):
        before = holders[first] - change[first]
        holders -= np.repeat(before, np.diff(first, append=len(thing)))
    counts = np.where((change > 0) & (holders == 1), 1, 0)
    counts -= (change < 0) & (holders == 0)
    order = np.argsort(position, kind="stable")
    counts, size = counts[order], _sizes(pairing, thing[order])
    start = np.zeros(1, np.int64)
    return (
        position[order],
        np.concatenate([start, np.cumsum(counts)]),
        np.concatenate([start, np.cumsum(counts * size)]),
    )
