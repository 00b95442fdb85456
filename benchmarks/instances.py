"""Buffers for the planner: files of others where there are any, else of the same kind, by a seed.

Covers: a rectangle of time and bytes cut into buffers, so that its height is known to be enough;
twins with trimmed sizes; CSV files of MiniMalloc's form; an independent check of a plan.
Does not cover: what is measured (``part_planning``).
"""

from __future__ import annotations

import csv
import heapq
import os
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CAPACITY = 1 << 20
UNIT = 1024
"""Times and sizes of generated instances are multiples of it."""
INPUTS = "TLMEM_PLANNING_INPUTS"
"""Folders with CSV files, set apart as in PATH. A capacity stands in the name: A.1048576.csv."""
CUT_FROM = 0.4
"""Pieces are cut at 40 to 60 % of their length."""
KINDS = ((154, 0.04), (170, 0.02), (203, 0.02), (213, 0.1), (215, 0.08), (296, 0.25))
KINDS += ((308, 0.3), (316, 0.3), (374, 0.08), (409, 0.15), (454, 0.04))
"""Number of buffers and share of the area that is left empty, as of MiniMalloc's hard instances."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """Buffers to be placed: rows of (first, last, size), both ends inclusive.

    ``capacity`` is a height that is known to be enough; None: none is known.
    """

    name: str
    rows: Ints
    capacity: int | None

    @property
    def lower_bound(self) -> int:
        """The most that is alive at once."""
        first, last, size = self.rows.T
        change: dict[int, int] = {}
        for at, by in zip([*first, *(last + 1)], [*size, *-size], strict=True):
            change[int(at)] = change.get(int(at), 0) + int(by)
        return int(np.cumsum([change[at] for at in sorted(change)]).max(initial=0))


def generated(seed: int, count: int, empty: float, name: str = "") -> Instance:
    """A rectangle of ``CAPACITY`` bytes and as much time, cut into so many buffers and some more.

    The largest piece is cut next, across time or across bytes; of what results a share of the area
    is left out. Since the pieces lay in the rectangle, its height is enough.
    """
    chance = np.random.default_rng([seed, count])
    units = CAPACITY // UNIT
    pieces = [(-(units * units), 0, units, 0, units)]
    wanted = round(count / (1 - empty))
    while len(pieces) < wanted:
        _, begin, end, low, high = heapq.heappop(pieces)
        parts = cut(chance, begin, end, low, high)
        for a, b, c, d in parts:
            heapq.heappush(pieces, (-(b - a) * (d - c), a, b, c, d))
    kept = chance.permutation(len(pieces))[:count]
    rows = [
        (begin * UNIT, end * UNIT - 1, (high - low) * UNIT)
        for _, begin, end, low, high in (pieces[n] for n in sorted(kept.tolist()))
    ]
    order = chance.permutation(len(rows))
    return Instance(name or f"{count}/{seed}", np.array(rows, np.int64)[order], CAPACITY)


def cut(
    chance: np.random.Generator, begin: int, end: int, low: int, high: int
) -> list[tuple[int, int, int, int]]:
    """A piece of time and bytes in two, near the middle; as it is when it is one unit of both."""
    if end - begin > 1 and (high - low == 1 or chance.random() < 0.5):
        at = near_the_middle(chance, begin, end)
        return [(begin, at, low, high), (at, end, low, high)]
    if high - low > 1:
        at = near_the_middle(chance, low, high)
        return [(begin, end, low, at), (begin, end, at, high)]
    return [(begin, end, low, high)]


def near_the_middle(chance: np.random.Generator, begin: int, end: int) -> int:
    """Where a stretch of two or more units is cut."""
    at = round(begin + (end - begin) * chance.uniform(CUT_FROM, 1 - CUT_FROM))
    return min(max(at, begin + 1), end - 1)


def trimmed_by_one(size: Ints, chance: np.random.Generator) -> Ints:
    """One byte off one in ten."""
    return size - (chance.random(len(size)) < 0.1)


def trimmed_a_little(size: Ints, chance: np.random.Generator) -> Ints:
    """0 to 63 bytes off each."""
    return size - chance.integers(0, 64, len(size))


def trimmed_in_steps(size: Ints, chance: np.random.Generator) -> Ints:
    """0, 512, 1024 or 1536 bytes off each."""
    return size - 512 * chance.integers(0, 4, len(size))


TWINS: dict[str, Callable[[Ints, np.random.Generator], Ints]] = {
    "1 byte off 10 %": trimmed_by_one,
    "0 to 63 bytes off": trimmed_a_little,
    "0 to 1536 bytes off in steps of 512": trimmed_in_steps,
}
"""Ways to make sizes smaller, so that an old plan still holds and its regularity is gone."""


def twin(instance: Instance, way: str, seed: int = 1) -> Instance:
    """The same lives with smaller sizes, for which the same capacity is enough."""
    rows = instance.rows.copy()
    rows[:, 2] = np.maximum(1, TWINS[way](rows[:, 2], np.random.default_rng([seed, len(rows)])))
    return replace(instance, name=f"{instance.name}, {way}", rows=rows)


def from_csv(path: Path) -> Instance:
    """A file with the columns ``lower``, ``upper`` (not included) and ``size``."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [
            (int(row["lower"]), int(row["upper"]) - 1, int(row["size"]))
            for row in csv.DictReader(file)
        ]
    named = re.fullmatch(r"(.+?)\.(\d+)", path.stem)
    return Instance(
        named[1] if named else path.stem,
        np.array(rows, np.int64).reshape(-1, 3),
        int(named[2]) if named else None,
    )


def to_csv(instance: Instance, path: Path) -> None:
    """Writes an instance as MiniMalloc reads it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        write = csv.writer(file, lineterminator="\n")
        write.writerow(("id", "lower", "upper", "size"))
        for number, (first, last, size) in enumerate(instance.rows.tolist()):
            write.writerow((number, first, last + 1, size))


def found() -> list[Instance]:
    """The instances of the folders in ``INPUTS``, in the order of their names; empty without."""
    folders = [Path(name) for name in os.environ.get(INPUTS, "").split(os.pathsep) if name]
    paths = [path for folder in folders for path in sorted(folder.glob("*.csv"))]
    return [from_csv(path) for path in paths]


def hard() -> list[Instance]:
    """Instances with a known capacity: those that are found, else generated ones."""
    there = [instance for instance in found() if instance.capacity is not None]
    return there or [
        generated(seed, count, empty, f"{seed}: {count} buffers")
        for seed, (count, empty) in enumerate(KINDS, 1)
    ]


def graphs() -> list[Instance]:
    """Instances without one: lives of tensors in models, if any are found."""
    return [instance for instance in found() if instance.capacity is None]


def is_valid(rows: Ints, offsets: Sequence[int]) -> bool:
    """Whether no two buffers that live at the same time overlap: each has its place to itself."""
    places: list[tuple[int, int]] = []
    moments = [(first, 1, n) for n, first in enumerate(rows[:, 0].tolist())]
    moments += [(last + 1, 0, n) for n, last in enumerate(rows[:, 1].tolist())]
    sizes, starts = rows[:, 2].tolist(), [int(offset) for offset in offsets]
    for _, begins, number in sorted(moments):
        place = (starts[number], starts[number] + sizes[number])
        at = bisect_left(places, place)
        if not begins:
            del places[at]
            continue
        if (at and places[at - 1][1] > place[0]) or (at < len(places) and places[at][0] < place[1]):
            return False
        insort(places, place)
    return True
