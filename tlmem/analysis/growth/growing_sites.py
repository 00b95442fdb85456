"""Lines that grow: as a whole, or by one of the call paths that lead to them.

A helper such as ``def zeros(n): return np.zeros(n)`` makes a model, temporaries and what leaks at
one line, and the many hide the few. A line that does not grow is therefore judged once more for
each of its call paths: its callers, from the nearest one to the nearest ``DEEPEST``, whichever
tells a growing path first. The conditions are those for lines, and two more, see ``grows_with``
and ``growing_paths``. The blamed line stays the same. A line that was steady for a while and grows
since is judged from there, see ``growing_lately``.

Covers: which objects are judged together. Does not cover: the conditions; see ``growth``.
See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.change_points import last_regime
from tlmem.analysis.growth.survival import FEW_SURVIVORS, FEWEST_SURVIVORS, Growth, judge_line
from tlmem.analysis.lifetimes import Lifetimes, exact_sums
from tlmem.analysis.places import Places

DEEPEST = 3
"""Callers that are looked at."""
MOST_PATHS = 16
"""Paths of one line that are judged, those with most survivors."""
PARTS = 200
"""Moments at which the live counts of a path and of its line are compared."""
LARGEST_PATH = 1_000_000
"""Objects up to which a path is judged; it bounds the time that a large recording takes."""
MOMENTS = 200
"""Moments at which a line's live count is looked at, to find its last regime."""
LATE_SURVIVORS = 40
"""Survivors that it takes to say that a line that was steady grows from some moment on."""
LATE_GAIN = 0.8
"""Share of them that the live count of the line must have gained."""
GIVEN_BACK = 0.1
"""Of their number, what may have risen and gone before."""
SHARED_RISE = 0.5
"""Share of what a path gains in the second half of its life that the whole line must gain too."""


def growing_lines(lives: Lifetimes, places: Places) -> list[Growth]:
    """All lines that grow, and growing paths of the other lines, most bytes first."""
    if len(lives) == 0:
        return []
    order = np.argsort(lives.group, kind="stable")
    sizes = np.bincount(lives.group, minlength=places.count)
    ends = np.cumsum(sizes)
    found = []
    for group in np.flatnonzero(sizes >= FEWEST_SURVIVORS).tolist():
        rows = order[ends[group] - sizes[group] : ends[group]]
        growth = judge_line(lives, group, rows)
        growth = growth or growing_lately(lives, group, rows)
        found += [growth] if growth is not None else growing_paths(lives, places, group, rows)
    return sorted(found, key=lambda growth: (-growth.bytes, growth.group))


def growing_lately(lives: Lifetimes, group: int, line: NDArray[np.int64]) -> Growth | None:
    """The growth of a line in its last regime, when it was steady before; ``line`` as below.

    What it makes from then on is judged like a line of its own, without allowance for chance; the
    line must gain what these gain, and have given nothing comparable back before. Regimes are
    looked for in time and, as a busy machine bends time, in what the line made.
    """
    born, died = lives.born[line], lives.died[line]
    if len(line) > LARGEST_PATH or lives.folded or not may_grow_lately(born, died):
        return None
    in_time = np.linspace(born[0], born[-1], MOMENTS)
    in_births = born[np.linspace(0, len(born) - 1, MOMENTS).astype(np.int64)].astype(np.float64)
    for times, positions in ((in_time, in_time), (in_births, np.arange(MOMENTS, dtype=np.float64))):
        held = counts_at(born, died, times)
        begin = last_regime(positions, held, LATE_SURVIVORS, GIVEN_BACK)
        if begin is None or begin <= positions[0]:
            continue
        start = int(np.searchsorted(positions, begin))
        growth = judge_line(lives, group, line[born >= times[start]], chance=0.0)
        if growth is None or growth.survivors < LATE_SURVIVORS:
            continue
        end = int(np.searchsorted(times, growth.judged_ns, "right")) - 1
        if held[end] - held[start] >= LATE_GAIN * growth.survivors:
            return growth
    return None


def may_grow_lately(born: NDArray[np.int64], died: NDArray[np.int64]) -> bool:
    """A quick look that spares most lines the search for regimes."""
    late = born[int(0.9 * (len(born) - 1))]
    return int(np.count_nonzero((died > late) & (born <= late))) >= LATE_SURVIVORS // 2


def counts_at(
    born: NDArray[np.int64], died: NDArray[np.int64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How many of a line's objects are alive at these times (ns)."""
    gone = np.sort(died[died <= born[-1]])
    counts = np.searchsorted(born, times, "right") - np.searchsorted(gone, times, "right")
    return counts.astype(np.float64)


def growing_paths(
    lives: Lifetimes, places: Places, group: int, line: NDArray[np.int64]
) -> list[Growth]:
    """The call paths of a line that grow; ``line`` are its objects in order of birth.

    Of many paths chance bends some, so it gets no allowance here.
    """
    born = lives.born[line]
    late = int(0.9 * (len(line) - 1))
    alive = line[: late + 1][lives.died[line[: late + 1]] > born[late]]
    if len(alive) < FEW_SURVIVORS:
        return []
    sites = np.flatnonzero(places.group_of_site == group)
    judged: set[bytes] = {sites.tobytes()}
    for depth in range(1, DEEPEST + 1):
        path_of_site = np.zeros(len(places.group_of_site), np.int64)
        path_of_site[sites], callers = places.paths(sites, depth)
        if len(callers) == 1:
            continue
        survivors = np.bincount(path_of_site[lives.site[alive]], minlength=len(callers) + 1)
        survivors[0] = 0
        candidates = np.argsort(-survivors, kind="stable")[:MOST_PATHS]
        candidates = candidates[survivors[candidates] >= FEW_SURVIVORS]
        if len(candidates) == 0:
            continue
        path_of_row = path_of_site[lives.site[line]]
        found = []
        for path in candidates.tolist():
            if (same := np.flatnonzero(path_of_site == path).tobytes()) in judged:
                continue
            judged.add(same)
            rows = line[path_of_row == path]
            if len(rows) > LARGEST_PATH:
                continue
            view = lives
            if lives.sums is not None:
                view = replace(
                    lives,
                    sums=exact_sums(places.recording, places, path_of_site, len(callers) + 1),
                )
            growth = judge_line(view, path, rows, chance=0.0)
            if growth is not None and grows_with(lives, line, rows, growth):
                found.append(replace(growth, group=group, callers=callers[path - 1]))
        if found:
            return found
    return []


def grows_with(
    lives: Lifetimes, line: NDArray[np.int64], path: NDArray[np.int64], growth: Growth
) -> bool:
    """Whether the line gains what its path gains, instead of losing it on other paths.

    In a bounded cache that several callers fill, one path's share may grow while the whole stays.
    """

    path = path[lives.born[path] <= growth.judged_ns]
    middle_ns = int(lives.born[path[len(path) // 2]])
    width = max(1, (growth.judged_ns - middle_ns) // PARTS)
    edges = middle_ns + width * np.arange(PARTS + 1)

    def late_rise(rows: NDArray[np.int64]) -> int:
        died = lives.died[rows]
        if lives.folded:
            made = np.concatenate(([0], np.cumsum(lives.weight[rows])))
        else:
            made = np.arange(len(rows) + 1)
        counts = made[np.searchsorted(lives.born[rows], edges, side="right")]
        gone = died <= edges[-1]
        part = np.clip(-((middle_ns - died[gone]) // width), 0, PARTS)
        weight = lives.weight[rows][gone] if lives.folded else None
        counts = counts - np.cumsum(np.bincount(part, weight, minlength=PARTS + 1))
        return int(counts[-1] - counts.min())

    return late_rise(line) >= SHARED_RISE * late_rise(path)
