"""Which growing lines may be a cache: full, with keys that come to an end, or in too short a run.

A cache of finitely many keys fills ever more slowly: the more of them it has, the fewer are new.
Until most are there it grows like a leak that becomes slower, and which of the two it is cannot be
told. A list, a deque or a set of objects has no keys.

A cache that was filled evenly for most of the run looks like a leak that goes on. It is full if the
work beside it goes on without another survivor, for several times as long as ever between two.

Covers: growing lines whose survivors come half as fast or less in the second half of the line's
life, on the clocks of time and of what others allocate; those of which none comes any more; those
of a short run, which may be emptied later.
Does not cover: containers with a bound of their own; see ``bounded_caches``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import GENERATIONS
from tlmem.analysis.holders.snapshots import Chain, holders_of
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.bounded_caches import bounded_finding, fills_a_bound
from tlmem.analysis.leaks.python_objects import total, what_views_use
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.units import format_seconds

KEYED = ("dict", "lru_cache", "collections.OrderedDict", "collections.defaultdict")
"""Words with which the names of containers begin that find things by a key."""
MODULES = "_modules"
"""The attribute in which a module of PyTorch has others by their names."""
SILENCE = 4
"""Times that the longest time between two survivors must have passed since the last one, counted in
objects that were made beside them."""
MOST_BESIDE = 8
"""Call stacks whose objects are counted for it, those with most of them since."""
ON_THEIR_WAY = 2
"""Objects that may be alive when the program is judged because they are being worked on."""
BY_CHANCE = 2.0
"""Standard errors by which the halves must differ."""


def fills_up(line: Survivors) -> bool:
    """Whether the survivors of a line come ever more slowly, and may be those of a cache."""
    if line.growth.manner != "kept" or not may_have_keys(line):
        return False
    early, late = pace(line)
    return late <= RULES.majority * early


def is_full(line: Survivors) -> bool:
    """Whether a container with keys got no more of a line's survivors, though the work went on.

    Some calls made objects in each part of the growth; and since the last survivor they made
    several times as many as ever between two. Where what was freed is folded, this is not known.
    """
    lives, growth, rows = line.lives, line.growth, line.growth.rows
    if rows is None or growth.manner != "kept" or lives.folded or len(rows) < RULES.few_survivors:
        return False
    if not line.chains or not may_have_keys(line):
        return False
    first, last = int(rows[0]), int(rows[-1])
    end = int(np.searchsorted(lives.born, lives.judged_ns, "right"))
    if added_since(line, last + 1, end) > ON_THEIR_WAY:
        return False
    sites, times = np.unique(lives.site[last + 1 : end], return_counts=True)
    most = sites[np.argsort(-times, kind="stable")][:MOST_BESIDE]
    return any(
        goes_on(rows, first + np.flatnonzero(lives.site[first:end] == site)) for site in most
    )


def added_since(line: Survivors, begin: int, end: int) -> int:
    """How many of the objects that the line made among these are alive when it is judged."""
    lives = line.lives
    rows = begin + np.flatnonzero(lives.group[begin:end] == line.growth.group)
    rows = rows[line.growth.is_of(lives, rows)]
    return int(np.count_nonzero(lives.died[rows] > lives.judged_ns))


def goes_on(rows: NDArray[np.int64], beside: NDArray[np.int64]) -> bool:
    """Whether what was made beside survivors all the time goes on without them for long.

    Args:
        rows: positions of the survivors, rising.
        beside: positions of what was made beside them, rising.
    """
    made = np.searchsorted(beside, rows)
    parts = np.diff(made[np.linspace(0, len(rows) - 1, GENERATIONS + 1).astype(int)])
    silence, longest = len(beside) - int(made[-1]), int(np.diff(made).max())
    expected = silence * len(rows) / max(1, int(made[-1]))
    return bool(
        parts.min() >= RULES.fair_part * max(1.0, parts.mean())
        and silence >= SILENCE * max(1, longest)
        and expected >= RULES.few_survivors
    )


def may_have_keys(line: Survivors) -> bool:
    """Whether a container with keys holds most of the survivors, or no holder is known."""
    seen_in_all = total(line.chains)
    keyed = total([chain for chain in line.chains if has_keys(chain)])
    return not line.now.shape[0] and keyed >= RULES.majority * seen_in_all


def has_keys(chain: Chain) -> bool:
    """Whether the container has keys: of the modules in one of PyTorch, the keys are names."""
    return chain.words.startswith(KEYED) or any(step.edge == MODULES for step in chain.steps)


def pace(line: Survivors) -> tuple[int, int]:
    """Survivors of the first and of the second half of the line's life.

    On that of two clocks, time and allocations of others, on which they differ least; equal where
    chance may explain it, and where the line makes all there is: time alone is bent by the machine.
    """
    rows = line.rows if line.growth.rows is None else line.growth.rows
    time, others = line.lives.clocks[0, rows], births_of_others(line, rows)
    found = []
    if others[-1] == others[0]:
        return len(others), len(others)
    for clock in (time, others):
        early = int(np.count_nonzero(clock <= (clock[0] + clock[-1]) / 2))
        found.append((early, len(clock) - early))
    early, late = min(found, key=lambda halves: halves[0] - halves[1])
    return (early, late) if early - late > BY_CHANCE * np.sqrt(early + late) else (early, early)


def births_of_others(line: Survivors, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many objects others had made when each survivor was born.

    Other lines of the function that makes the survivors are excluded, because they slow down with
    the cache. If that function makes most objects, only the survivors' own line is excluded. Those
    that were folded are others.
    """
    lives, frames = line.lives, line.places.frames
    own = np.array([(f.file, f.function) == (line.line.file, line.line.function) for f in frames])
    born = own[lives.group]
    mine = born[rows[0] : rows[-1] + 1]
    if np.count_nonzero(mine) > RULES.own_clock * len(mine):
        born = lives.group == line.growth.group
    if lives.folded:
        return (lives.ordinal - np.cumsum(born))[rows]
    return np.cumsum(~born)[rows]


def filling_finding(line: Survivors) -> Finding:
    """What is said of a line that may fill a cache: why it cannot be judged."""
    if fills_a_bound(line):
        return bounded_finding(line)
    holder = f" in {holders_of(list(line.chains))[0].name}" if line.chains else ""
    if fills_up(line):
        early, late = pace(line)
        why = (
            f", {early:,} in the first half of the time and {late:,} in the second. A cache whose "
            "keys come to an end fills like that, and so does a leak that becomes slower."
        )
    else:
        why = (
            f", and the program worked for only {format_seconds(line.lives.work_seconds)}. A cache "
            "that is emptied later fills like that, and so does a leak."
        )
    used = what_views_use(line.chains) if line.chains else ""
    part = (
        f" {used[:1].upper()}{used[1:]}: a copy of each part would free the rest." if used else ""
    )
    said = f"{line.noun} were kept{holder}{why}{part}"
    return line.finding("filling-cache", said, severity="info")
