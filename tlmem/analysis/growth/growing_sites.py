"""Lines that grow: their objects keep surviving, from ever new generations of the run.

A line grows when, up to the last of its allocations that matter, four things hold together:

* the *floor*, the live count that is never freed, rises evenly (not only at the beginning, as
  in warm-up, a bounded cache or a model that is built once) and still rises at the end;
* *survivors* come from all parts of its life, or what it accumulated was never freed in
  bulk (a list that is emptied now and then only holds the last ones);
* that life covers a good part of the program's run and reaches its end;
* most survivors are older than the objects that the line frees, or what it frees becomes older
  and older.

"Evenly" and "part" are measured on several clocks, see ``lifetimes``: time alone is bent by pauses
and by steps that become slower, a count of allocations by loops that do not allocate.

A helper such as ``def zeros(n): return np.zeros(n)`` makes a model, temporaries and what leaks at
one line, and the many hide the few; so does ``trainer.fit()``, which is the user's only line of a
whole training. A line that does not grow is therefore judged once more for each of its call paths:
its callers, from the nearest one to the nearest ``DEEPEST``, then the lines in which libraries
allocated for it, then whole stacks. A site that is on a growing path is not judged again on a
narrower one. The conditions are those for lines, and three more, see ``grows_with``,
``stages`` and ``growing_paths``. The blamed line stays the same. A line that was steady for
a while and grows since is judged from there, see ``growing_lately``.

Covers: tracked objects by blamed line and by call path. Does not cover: memory outside arrays; see
``process_growth``. See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.change_points import last_regime
from tlmem.analysis.growth.rates import rate_of
from tlmem.analysis.growth.robust import floor_curve, share_at, unevenness
from tlmem.analysis.growth.stages import was_given_back
from tlmem.analysis.lifetimes import NEVER, Lifetimes, alive_at, exact_sums
from tlmem.analysis.model import Finding, Rate, StackFrame
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES, Checks

FIRST_FEW = 0.02
LATE_BEGIN = 0.15
"""A line grows from its first survivors on, but for a few, when they come this late in its life."""
EARLY_PART, GREW_BEFORE = 0.25, 0.2
"""It grew before if from this part of the time before on it gained this share of all that came."""
FEWEST_MOMENTS, MOST_MOMENTS = 12, 60
"""Moments at which a line's bytes are looked at to say how fast they rise."""
GENERATIONS = 10
"""Parts of a line's life, each of which has survivors of its own."""
LATE = (0.8, 0.92)
"""Positions behind which a rise must go on; of few survivors the first of them, or none."""
LAST_FEW = 8
"""Survivors that may be temporaries of the last moment."""
LATEST_FREES = 300
"""Frees of a line that tell where its objects are usually freed."""
DEEPEST = 3
"""Callers that are looked at."""
MOST_PATHS = 16
"""Paths of one line that are judged, those with most survivors."""
PARTS = 200
"""Moments at which the live counts of a path and of its line are compared."""
LARGEST_PATH = 1_000_000
"""Objects up to which a path is judged; it bounds the time that a large recording takes."""
BRIEF = 0.1
"""Share of the run from which on growth that has begun lately leaves a doubt."""
MOMENTS = 200
"""Moments at which a line's live count is looked at, to find its last regime."""


@dataclass(frozen=True)
class GrowingSite:
    """A line that grows, judged when its live count was highest near its last allocations.

    ``survivors`` of ``made`` objects were alive then, together ``bytes``; the line had been at work
    from ``first_ns`` to ``judged_ns``. ``site`` is the most common full site of the survivors and
    ``example`` the object number of one of the oldest. Where only objects of some ``sites`` grow,
    all but the group is about those: made for ``callers``, nearest first, or by the line ``inside``
    a library that this one called. ``rate`` is that of the bytes that are never freed, in bytes per
    second; ``rows`` are the survivors that are known one by one. ``manner`` is ``kept``, or how
    growth hides, see ``hidden_growth``.
    """

    group: int
    survivors: int
    made: int
    bytes: int
    first_ns: int
    judged_ns: int
    site: int
    example: int
    rate: Rate
    callers: tuple[StackFrame, ...] = ()
    inside: StackFrame | None = None
    manner: str = "kept"
    rows: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)
    sites: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    def is_of(self, lives: Lifetimes, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these objects of its line the growth is about."""
        if self.sites is None:
            return np.ones(len(rows), bool)
        return np.isin(lives.site[rows], self.sites)

    def info(self, kind: str, places: Places, evidence: str) -> Finding:
        """A finding that explains the growth instead of reporting it as a leak."""
        return Finding(
            kind=kind,
            severity="info",
            count=self.survivors,
            bytes=self.bytes,
            evidence=evidence,
            object=self.example,
            site=places.frames[self.group],
            stack=places.stack(self.site),
        )

    @property
    def slope_bytes_per_s(self) -> float:
        """The slope alone."""
        return self.rate.value


def growing_lines(
    lives: Lifetimes, places: Places, asked: dict[int, Checks] | None = None
) -> list[GrowingSite]:
    """All lines that grow, and growing paths of the other lines, most bytes first.

    Args:
        asked: takes the conditions that each line was asked.
    """
    if len(lives) == 0:
        return []
    order = np.argsort(lives.group, kind="stable")
    sizes = np.bincount(lives.group, minlength=places.count)
    ends = np.cumsum(sizes)
    found = []
    for group in np.flatnonzero(sizes >= RULES.fewest_survivors).tolist():
        rows = order[ends[group] - sizes[group] : ends[group]]
        checks = Checks()
        growth = judge_line(lives, group, rows, checks=checks)
        if asked is not None and checks:
            asked[group] = checks
        growth = growth or growing_lately(lives, group, rows)
        found += [growth] if growth is not None else growing_paths(lives, places, group, rows)
    return sorted(found, key=lambda growth: (-growth.bytes, growth.group))


def is_early(growth: GrowingSite, lives: Lifetimes) -> bool:
    """Whether the run was too short to tell growth from a cache that is emptied later.

    Of an array to which new data were joined again and again, each join counts.
    """
    kept = growth.made if growth.manner == "joined" else growth.survivors
    return kept < RULES.many_survivors and lives.is_short


def begun_lately(lives: Lifetimes, places: Places, growing: Collection[int]) -> list[GrowingSite]:
    """Lines that were steady and grow since, but too briefly to be judged; most bytes first.

    A last phase may keep, as its results, what the ones before made and dropped.

    Args:
        growing: lines that are left out.
    """
    order = np.argsort(lives.group, kind="stable")
    sizes = np.bincount(lives.group, minlength=places.count)
    ends = np.cumsum(sizes)
    sizes[list(growing)] = 0
    found = []
    for group in np.flatnonzero(sizes >= RULES.late_survivors).tolist():
        rows = order[ends[group] - sizes[group] : ends[group]]
        growth = growing_lately(lives, group, rows, BRIEF)
        lasted_ns = growth.judged_ns - growth.first_ns if growth is not None else 0
        if growth is not None and lasted_ns >= RULES.shortest_run_s * BRIEF * 1e9:
            found.append(growth)
    return sorted(found, key=lambda growth: (-growth.bytes, growth.group))


def growing_lately(
    lives: Lifetimes, group: int, line: NDArray[np.int64], share: float | None = None
) -> GrowingSite | None:
    """The growth of a line in its last regime, when it was steady before; ``line`` as below.

    What it makes from then on is judged like a line of its own, without allowance for chance; the
    line must gain what these gain, and have given nothing comparable back before. Regimes are
    looked for in time and, as a busy machine bends time, in what the line made.

    Args:
        share: how much of the run the regime must take at least; ``RULES.span`` where left out.
    """
    born, died = lives.born[line], lives.died[line]
    if len(line) > LARGEST_PATH or lives.lost_ns or not may_grow_lately(born, died):
        return None
    in_time = np.linspace(born[0], born[-1], MOMENTS)
    in_births = born[np.linspace(0, len(born) - 1, MOMENTS).astype(np.int64)].astype(np.float64)
    for times, positions in ((in_time, in_time), (in_births, np.arange(MOMENTS, dtype=np.float64))):
        held = alive_at(times, born, died)
        begin = last_regime(positions, held, RULES.late_survivors, RULES.backlog, share)
        if begin is None or begin <= positions[0]:
            continue
        start = int(np.searchsorted(positions, begin))
        late = line[born >= times[start]]
        growth = judge_line(lives, group, late, chance=False, briefly=share is not None)
        if growth is None or growth.survivors < RULES.late_survivors:
            continue
        end = int(np.searchsorted(times, growth.judged_ns, "right")) - 1
        if held[end] - held[start] >= RULES.nearly_all * growth.survivors:
            return growth
    return None


def may_grow_lately(born: NDArray[np.int64], died: NDArray[np.int64]) -> bool:
    """A quick look that spares most lines the search for regimes."""
    late = born[int(0.9 * (len(born) - 1))]
    return int(np.count_nonzero((died > late) & (born <= late))) >= RULES.late_survivors // 2


def growing_paths(
    lives: Lifetimes, places: Places, group: int, line: NDArray[np.int64]
) -> list[GrowingSite]:
    """The call paths of a line that grow; ``line`` are its objects in order of birth.

    Of many paths chance bends some, so it gets no allowance here.
    """
    born = lives.born[line]
    late = int(0.9 * (len(line) - 1))
    alive = line[: late + 1][lives.died[line[: late + 1]] > born[late]]
    if len(alive) < RULES.few_survivors:
        return []
    sites = np.flatnonzero(places.group_of_site == group)
    sites = sites[np.isin(sites, lives.site[line])]
    judged: set[bytes] = {sites.tobytes()}
    found: list[GrowingSite] = []
    covered = np.array([], np.int64)
    for numbers, paths in divisions(places, sites):
        if len(paths) == 1:
            continue
        path_of_site = np.zeros(len(places.group_of_site), np.int64)
        path_of_site[sites] = numbers
        survivors = np.bincount(path_of_site[lives.site[alive]], minlength=len(paths) + 1)
        survivors[0] = 0
        candidates = np.argsort(-survivors, kind="stable")[:MOST_PATHS]
        candidates = candidates[survivors[candidates] >= RULES.few_survivors]
        if len(candidates) == 0:
            continue
        path_of_row = path_of_site[lives.site[line]]
        for path in candidates.tolist():
            own = sites[numbers == path]
            if own.tobytes() in judged or np.isin(own, covered).any():
                continue
            judged.add(own.tobytes())
            rows = line[path_of_row == path]
            if len(rows) > LARGEST_PATH:
                continue
            view = lives
            if lives.sums is not None:
                view = replace(
                    lives,
                    sums=exact_sums(places.recording, places, path_of_site, len(paths) + 1),
                )
            growth = judge_line(view, path, rows, chance=False)
            if growth is None or was_given_back(lives, line[path_of_row != path], growth):
                continue
            if grows_with(lives, line, rows, growth):
                found.append(replace(growth, group=group, sites=own, **paths[path - 1]))
                covered = np.concatenate((covered, own))
    return found


def divisions(
    places: Places, sites: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], list[dict[str, Any]]]]:
    """Groups the sites of a line into call paths, first coarsely and then more finely.

    Yields:
        The path number of each site, from 1, and the ``GrowingSite`` fields that name each path.
    """
    for depth in range(1, DEEPEST + 1):
        numbers, callers = places.paths(sites, depth)
        yield numbers, [{"callers": path} for path in callers]
    lines, frames = places.inner_lines(sites)
    yield lines, [{"inside": frame} for frame in frames]
    yield (
        np.arange(1, len(sites) + 1),
        [{"inside": frames[number - 1]} for number in lines.tolist()],
    )


def grows_with(
    lives: Lifetimes, line: NDArray[np.int64], path: NDArray[np.int64], growth: GrowingSite
) -> bool:
    """Whether the line gains what its path gains, instead of losing it on other paths.

    In a bounded cache that several callers fill, one path's share may grow while the whole stays.
    """

    path = path[lives.born[path] <= growth.judged_ns]
    moments = np.linspace(lives.born[path[len(path) // 2]], growth.judged_ns, PARTS + 1)

    def late_rise(rows: NDArray[np.int64]) -> float:
        counts = alive_at(moments, lives.born[rows], lives.died[rows], lives.weight[rows])
        return float(counts[-1] - counts.min())

    return late_rise(line) >= RULES.majority * late_rise(path)


def judge_line(
    lives: Lifetimes,
    group: int,
    line: NDArray[np.int64],
    chance: bool = True,
    checks: Checks | None = None,
    briefly: bool = False,
) -> GrowingSite | None:
    """Whether one line grows; ``line`` are its objects in order of birth.

    Args:
        chance: whether some unevenness is put down to chance, the more the fewer survivors.
        checks: takes the conditions that it was asked.
        briefly: whether it may do so in a small part of the run.
    """
    checks = Checks() if checks is None else checks
    born, died = lives.born[line], lives.died[line]
    if not may_grow(born, died):
        return None
    rows = line[: highest_near_end(live_counts(born, died, lives.weight[line])) + 1]
    judged_ns = int(lives.born[rows[-1]])
    alive = lives.died[rows] > max(judged_ns, lives.unwinding_ns)
    weight = lives.weight[rows]
    survivors = int(weight[alive].sum())
    if not are_enough(
        survivors, held_by_most(lives.kept_bytes(rows[alive]), weight[alive]), checks
    ):
        return None
    own = own_shares(lives, rows, None if lives.sums is None else int(lives.sums.made[group]))
    if not reaches_the_end(lives, rows, judged_ns, checks, briefly):
        return None
    if not outlive(lives, rows, alive, checks):
        return None
    if not rises_evenly(lives, rows, alive, chance, own, checks):
        return None
    alive_rows = without_passing(lives, rows, alive)
    alive_rows = alive_rows[first_of_growth(lives, rows, alive_rows) :]
    grown = rows[np.searchsorted(rows, alive_rows[0]) :] if len(alive_rows) else rows
    if not is_late(lives, rows, grown) or grew_before(lives, rows, grown):
        grown = rows
    sites, counts = np.unique(lives.site[alive_rows], return_counts=True)
    made, survivors = len(line), int(lives.weight[alive_rows].sum())
    held = int((lives.size[alive_rows] * lives.weight[alive_rows]).sum())
    if not are_enough(
        survivors, held_by_most(lives.kept_bytes(alive_rows), lives.weight[alive_rows])
    ):
        return None
    if len(grown) < len(rows):
        made = int(lives.weight[grown].sum()) + len(line) - len(rows)
    elif lives.sums is not None:
        made = int(lives.sums.made[group])
        if lives.sums.live_count[group] >= 0.9 * survivors:
            survivors, held = int(lives.sums.live_count[group]), int(lives.sums.live_bytes[group])
    if survivors < RULES.many_survivors:  # see is_early
        checks.at_least(RULES.shortest_run_s, lives.work_seconds)
    return GrowingSite(
        group=group,
        survivors=survivors,
        made=made,
        bytes=held,
        first_ns=int(lives.born[grown[0]]),
        judged_ns=judged_ns,
        site=int(sites[np.argmax(counts)]),
        example=int(lives.ordinal[alive_rows[0]]),
        rate=rate_of_line(lives, grown, survivors, held),
        rows=alive_rows,
    )


def first_of_growth(lives: Lifetimes, rows: NDArray[np.int64], alive: NDArray[np.int64]) -> int:
    """The position in the survivors from which on they come, behind a few much earlier ones.

    Time counts without pauses: a process that waited for a core has not begun anew behind it.
    """
    few, time = int(FIRST_FEW * len(alive)), lives.clocks[0]
    gaps = np.diff(time[np.concatenate((rows[:1], alive[: few + 1]))])
    widest = int(np.argmax(gaps)) if len(gaps) else 0
    whole = time[rows[-1]] - time[rows[0]]
    return widest if len(gaps) and gaps[widest] > LATE_BEGIN * whole else 0


def is_late(lives: Lifetimes, rows: NDArray[np.int64], grown: NDArray[np.int64]) -> bool:
    """Whether what grows began clearly later than the line."""
    time = lives.clocks[0]
    begin = time[rows[0]]
    return bool(time[grown[0]] - begin > LATE_BEGIN * (time[rows[-1]] - begin))


def grew_before(lives: Lifetimes, rows: NDArray[np.int64], grown: NDArray[np.int64]) -> bool:
    """Whether a line grew as well before the first of those survived that are alive now.

    Each of a growing number of users may have a state that is soon in another one's place.
    """
    times, held = held_at_moments(lives, rows, MOST_MOMENTS)
    floor = floor_curve(held)
    first_ns = float(lives.born[grown[0]])
    begin = times[0] + EARLY_PART * (first_ns - times[0])
    early, then = np.interp([begin, first_ns], times, floor)
    return bool(then - early >= GREW_BEFORE * (floor[-1] - floor[0]))


def rate_of_line(lives: Lifetimes, rows: NDArray[np.int64], survivors: int, held: int) -> Rate:
    """How fast the bytes rise that a line never frees, in bytes per second.

    They are counted, so their average is exact; the interval says how much its parts differ.
    """
    moments = held_at_moments(lives, rows, min(MOST_MOMENTS, max(FEWEST_MOMENTS, survivors)))
    seconds = (moments[0] - moments[0][0]) / 1e9
    rate = rate_of(seconds, floor_curve(moments[1]))
    average = held / max(1e-3, float(seconds[-1]))
    if rate is None:
        return Rate(average, 0.0, 2 * average)
    low, high = max(0.0, min(rate.low, average)), max(rate.high, average)
    return Rate(average, low, high)


def held_at_moments(
    lives: Lifetimes, rows: NDArray[np.int64], moments: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bytes of a line that are alive at evenly spread times (ns) of its life, and these times."""
    born, died = lives.born[rows], lives.died[rows]
    times = np.linspace(born[0], born[-1], moments)
    return times, alive_at(times, born, died, lives.size[rows] * lives.weight[rows])


def are_enough(survivors: int, held: int, checks: Checks | None = None) -> bool:
    """Whether so many survivors, of so many bytes, are a habit and not a buffer or a model."""
    checks = Checks() if checks is None else checks
    if survivors >= RULES.few_survivors:
        enough = checks.at_least(RULES.few_survivors, survivors)
    else:
        enough = checks.at_least(RULES.fewest_survivors, survivors)
        enough = enough and checks.at_least(RULES.least_bytes_of_few, held)
    if not enough or survivors >= RULES.many_survivors:
        return enough
    return checks.at_least(RULES.least_bytes, held)


def held_by_most(size: NDArray[np.int64], weight: NDArray[np.int64]) -> int:
    """Bytes of survivors, were the few largest like the others.

    A buffer or two that a line has while it makes small results are no habit; so many are that
    would be enough by themselves. Of few survivors a quarter are the largest.
    """
    count = int(weight.sum())
    large = min(RULES.fewest_survivors - 1, int(RULES.large_share * count))
    order = np.argsort(size, kind="stable")
    weight = weight[order]
    before = np.cumsum(weight) - weight
    others = np.clip(count - large - before, 0, weight)
    return int(int((size[order] * others).sum()) * count / max(1, count - large))


def without_passing(
    lives: Lifetimes, rows: NDArray[np.int64], alive: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Survivors without the last temporaries, which were alive by chance when the line was judged.

    They are those of the last few that were freed soon after, where others of the line had been.
    """
    survivors = rows[alive]
    usual = np.unique(lives.died_site[rows[~alive][-LATEST_FREES:]])
    last = survivors[-LAST_FEW:]
    passing = (lives.died[last] != NEVER) & np.isin(lives.died_site[last], usual)
    return np.concatenate((survivors[:-LAST_FEW], last[~passing]))


def may_grow(born: NDArray[np.int64], died: NDArray[np.int64]) -> bool:
    """A quick look that spares most lines the full one: are more alive late than in the middle?"""
    late = born[int(0.9 * (len(born) - 1))]
    alive_late = int(np.count_nonzero((died > late) & (born <= late)))
    if alive_late < RULES.fewest_survivors // 2:
        return False
    middle = max(born[len(born) // 2], born[0] + (late - born[0]) // 2)
    alive_middle = int(np.count_nonzero((died > middle) & (born <= middle)))
    early = int(np.count_nonzero((died > late) & (born < middle)))
    return early >= RULES.fewest_survivors // 4 or alive_late > 1.1 * alive_middle


def live_counts(
    born: NDArray[np.int64], died: NDArray[np.int64], weight: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many were alive just after each birth."""
    return alive_at(born, born, died, weight).astype(np.int64)


def highest_near_end(counts: NDArray[np.int64]) -> int:
    """The latest birth with the highest live count among the last tenth of a line's births.

    Judging there counts what was held before frames unwound, whatever is allocated afterwards.
    """
    start = int(0.9 * (len(counts) - 1))
    tail = counts[start:]
    return start + len(tail) - 1 - int(np.argmax(tail[::-1]))


def reaches_the_end(
    lives: Lifetimes,
    rows: NDArray[np.int64],
    judged_ns: int,
    checks: Checks | None = None,
    briefly: bool = False,
) -> bool:
    """Whether a line's life covers a good part of the program's activity and lasts to its end."""
    checks = Checks() if checks is None else checks
    begin = lives.clocks_begin
    whole = np.maximum(lives.clocks[:, -1] - begin, 1e-9)
    reach = np.sort(np.clip((lives.clocks[:, rows[-1]] - begin) / whole, 0, 1))
    span = np.sort(np.clip((lives.clocks[:, rows[-1]] - lives.clocks[:, rows[0]]) / whole, 0, 1))
    # What survived until here may take long to be freed when the program ends.
    unwinding_ns = np.quantile(lives.died[rows][lives.died[rows] > judged_ns], RULES.unwinding)
    end_ns = min(lives.cut_ns, max(int(unwinding_ns), judged_ns, lives.unwinding_ns))
    first, end = lives.run.at(lives.first_made_ns), lives.run.at(end_ns)
    wall = (lives.run.at(judged_ns) - first) / max(1.0, end - first)
    return (
        checks.at_least(RULES.wall_reach, wall)
        and (briefly or checks.at_least(RULES.span, span[1]))
        and checks.at_least(RULES.reach, reach[1])
    )


def outlive(
    lives: Lifetimes, rows: NDArray[np.int64], alive: NDArray[np.bool_], checks: Checks
) -> bool:
    """Whether survivors are older than what the line frees, or it frees older and older objects.

    Sessions that expire, and a list that is emptied now and then, rise like a leak until the first
    ones are old enough. Time counts without pauses.
    """
    gone = rows[~alive]
    if len(gone) < RULES.fewest_survivors:
        return True
    time = lives.clocks[0]
    gone = gone[np.argsort(lives.died[gone], kind="stable")]
    ages = np.interp(lives.died[gone], lives.born, time) - time[gone]
    older = time[rows[-1]] - time[rows[alive]] > np.median(ages)
    share = float(np.average(older, weights=lives.weight[rows[alive]]))
    if share >= RULES.majority:
        return checks.at_least(RULES.majority, share)
    third = max(1, len(ages) // 3)
    first, last = float(np.median(ages[:third])), float(np.median(ages[-third:]))
    return checks.at_least(RULES.ages, last / max(1.0, first))


def own_shares(
    lives: Lifetimes, rows: NDArray[np.int64], made: int | None = None
) -> tuple[float, float, float]:
    """How much of each clock a line drives itself; after a fold the bytes of others are unknown.

    Args:
        made: how many objects the line made, where ``rows`` are not all of them.
    """
    whole = np.maximum(lives.clocks[:, rows[-1]] - lives.clocks[:, rows[0]], 1e-9)
    bytes_share = 1.0 if lives.folded else np.maximum(lives.size[rows], 1).sum() / whole[2]
    count = max(len(rows), made or 0)
    return 0.0, float(count / whole[1]), float(bytes_share)


def rises_evenly(
    lives: Lifetimes,
    rows: NDArray[np.int64],
    alive: NDArray[np.bool_],
    chance: bool,
    own: tuple[float, float, float],
    checks: Checks,
) -> bool:
    """Whether floor and survivors rise evenly on enough clocks that are not the line's own."""
    weight = lives.weight[rows]
    counts = live_counts(lives.born[rows], lives.died[rows], weight)
    survivors = int(weight[alive].sum())
    before = np.append(counts[1:] - weight[1:], survivors)
    floor = floor_curve(before) / survivors
    kept = np.cumsum(weight * alive) / survivors
    drawdown = float(np.max(np.maximum.accumulate(counts) - before)) / survivors
    known = int(np.count_nonzero(alive))
    late = LATE[: int(known >= RULES.few_survivors) + int(known >= 3 * RULES.few_survivors)]
    limit = RULES.unevenness + (RULES.chance / np.sqrt(known) if chance else 0.0)

    def on(clock: int) -> Checks:
        return rise_on(lives.clocks[clock, rows], floor, kept, alive, drawdown, limit, late)

    return votes(checks, own, on)


def votes(checks: Checks, own: tuple[float, float, float], on: Callable[[int], Checks]) -> bool:
    """Whether conditions hold on enough of the clocks that a line does not drive itself.

    A clock that the line drives would call anything even. Two clocks must agree where three vote.

    Args:
        own: how much of each clock the line drives.
        on: the conditions on one clock.
    """
    voting = [clock for clock, share in enumerate(own) if share <= RULES.own_clock]
    asked = sorted((on(clock) for clock in voting), key=Checks.failed)
    decides = asked[min(2, max(1, len(voting) - 1)) - 1]
    checks.extend(decides)
    return decides.failed() == 0


def rise_on(
    clock: NDArray[np.float64],
    floor: NDArray[np.float64],
    kept: NDArray[np.float64],
    alive: NDArray[np.bool_],
    drawdown: float,
    limit: float,
    late: tuple[float, ...],
) -> Checks:
    """What one clock says: do floor and survivors rise evenly, and to the end?"""
    checks = Checks()
    first = clock[len(clock) // 100]
    x = np.clip((clock - first) / max(clock[-1] - first, 1e-9), 0, 1)
    if not even(checks, x, floor, limit, late) or drawdown <= RULES.backlog:
        return checks
    # What fell in between is a backlog, unless survivors come from everywhere.
    if checks.at_most(RULES.unevenness, unevenness(x, kept), limit):
        fair_parts(checks, x[alive])
    return checks


def fair_parts(checks: Checks, x: NDArray[np.float64]) -> bool:
    """Whether survivors come from all parts of a life; ``x`` are their births, from 0 to 1."""
    parts = GENERATIONS if len(x) >= RULES.few_survivors else GENERATIONS // 2
    made = np.bincount(np.minimum((x * parts).astype(int), parts - 1), minlength=parts)
    fair = np.count_nonzero(made >= RULES.fair_part * made.mean())
    return checks.at_least(RULES.generations, fair / parts)


def even(
    checks: Checks,
    x: NDArray[np.float64],
    share: NDArray[np.float64],
    limit: float,
    late: tuple[float, ...] = LATE,
) -> bool:
    """Whether a rise is even and goes on to the end: the one question about the shape of a curve.

    Args:
        checks: takes the conditions.
        x: positions from 0 to 1, ascending.
        share: share of the whole rise that is reached at each.
        limit: the most unevenness, made from the rule.
        late: positions behind which it must rise on.
    """
    paces = [(1 - share_at(x, share, at)) / (1 - at) for at in late]
    return checks.at_most(RULES.unevenness, unevenness(x, share), limit) and (
        not paces or checks.at_least(RULES.late_rate, min(paces))
    )
