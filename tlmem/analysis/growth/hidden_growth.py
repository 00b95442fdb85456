"""Growth that the live count of a line does not show.

A line whose survivors do not tell it may still hold more and more, in six ways:

* *larger*: a constant number of objects, each replaced by a larger one;
* *joined*: one object, or a few, to which what comes is joined, see ``growing_arrays``;
* *backlog*: what is freed in bulk is less than what arrived: the troughs between rise;
* *renewed*: more and more are alive, although each is soon in another one's place;
* *beside*: a few of many are kept, beside a larger population that comes and goes (a ring buffer);
* *together*: large objects of several lines, none with enough of its own.

Covers: lines, and large objects of all lines together, that ``growing_sites`` does not call
growing. See also: docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_arrays import Enlargement, is_joined, joined_lines
from tlmem.analysis.growth.growing_sites import (
    GrowingSite,
    are_enough,
    even,
    fair_parts,
    held_by_most,
    judge_line,
    own_shares,
    rate_of_line,
    reaches_the_end,
    votes,
)
from tlmem.analysis.growth.robust import floor_curve
from tlmem.analysis.lifetimes import Lifetimes, alive_at
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES, Checks

MOMENTS = 600
FILLED = (1 / 3, 1 / 2, 2 / 3, 4 / 5)
"""Shares of a line's births by one of which a cache is full, if it is one."""
FALL = 0.2
"""Where the number falls by more than this share of what seems kept, that is not what stays."""
GENERATIONS, EARLY = 20, 0.1
"""In one of so many parts of its life most objects of a line are renewed; at this share of it there
are still few."""
SWAY = 2
"""So many objects more or less are in a full cache, as it evicts before or after it adds."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def hidden_growth(
    lives: Lifetimes,
    places: Places,
    growths: list[GrowingSite],
    enlargements: list[Enlargement],
) -> list[GrowingSite]:
    """Lines that grow although their live count does not rise evenly, most bytes first.

    Args:
        growths: lines that are known to grow; they are not judged again, and where there is one,
            lines are not judged together.
        enlargements: lines whose arrays are replaced by ever larger ones.
    """
    if len(lives) == 0 or lives.lost_ns:
        return []
    known = {growth.group for growth in growths}
    end_ns = max(int(lives.born[-1]), lives.unwinding_ns)
    survivors = np.bincount(lives.group[lives.died > end_ns], minlength=places.count)
    candidates = np.flatnonzero(survivors >= RULES.fewest_values)
    order = np.argsort(lives.group, kind="stable")
    starts = np.searchsorted(lives.group[order], np.arange(places.count + 1))
    found = []
    for group in candidates.tolist():
        rows = order[starts[group] : starts[group + 1]]
        if group in known or len(rows) < RULES.few_survivors:
            continue
        growth = (
            beside_others(lives, group, rows)
            or rising_backlog(lives, group, rows)
            or larger_values(lives, group, rows)
            or renewed(lives, group, rows)
        )
        found += [growth] if growth is not None else []
    known |= {growth.group for growth in found}
    joined = [each for each in enlargements if each.group not in known]
    found += [site_of_joined(lives, each) for each in joined_lines(lives, joined)]
    if not found and not growths:
        found = growing_together(lives)
    return sorted(found, key=lambda growth: (-growth.bytes, growth.group))


def beside_others(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line of which some objects stay while all others die at a usual age.

    Ages are counted in births of the line. What is younger than the usual age at the end may still
    die; of the older ones nearly all must have stayed, evenly among all that the line made: here
    its own births are a clock, as most of them do not stay. They are not the only one: a cache that
    fills makes temporaries for each entry, and both stop when it is full.
    """
    born, died = lives.born[line], lives.died[line]
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    stays = died > end_ns
    ages = np.searchsorted(born, died, side="right") - np.arange(len(line))
    if stays.all() or not stays.any():
        return None
    usual = int(np.quantile(ages[~stays], RULES.usual, method="higher")) + 1
    old = np.arange(len(line)) < len(line) - usual
    outlived = np.count_nonzero(old & (stays | (ages > usual)))
    kept = np.flatnonzero(old & stays)
    if len(kept) < RULES.few_survivors or len(kept) < RULES.nearly_all * outlived:
        return None
    if len(kept) > RULES.majority * len(line):  # births would count what is kept, not the others
        return None
    rows = line[kept]
    if not are_enough(len(rows), held_by_most(lives.size[rows], lives.weight[rows])):
        return None
    window = np.count_nonzero(old)
    if not lasts(lives, line) or keeps_its_number(born, died, len(kept) / window):
        return None
    share, x = np.arange(1, len(kept) + 1) / len(kept), kept / window
    checks = Checks()
    if not even(checks, x, share, RULES.unevenness, late=()) or not fair_parts(checks, x):
        return None
    stayed = np.cumsum(np.isin(np.arange(window), kept)) / len(kept)
    if min(own_shares(lives, line[:window])[1:]) <= RULES.own_clock:  # others work too
        if not rises_on_clocks(lives, line[:window], stayed):
            return None
    return site_of(lives, group, line, rows, "beside")


def keeps_its_number(born: Rows, died: Rows, kept: float) -> bool:
    """Whether a line has had as many live objects for so long that those kept would have shown.

    A full cache that evicts its least used entries, or any of them, may keep some for good, each in
    place of another. So it may while fewer and fewer are alive in the last fifth of the births.

    Args:
        born, died: of the line's objects, in order of birth.
        kept: so many of those made at a time seem to stay.
    """
    for share in FILLED:
        late = int(share * len(born))
        more = kept * (len(born) - late)
        held = alive_at(born[late:], born, died)
        if more >= RULES.fewest_survivors and np.ptp(held) <= SWAY:
            return True
    # These are of the last share.
    return more >= RULES.fewest_survivors and falls(held, more)


def falls(held: Floats, more: float) -> bool:
    """Whether a number of live objects falls, and sways by less than what should be more.

    So that of a container which lets go of some only after long, and has fewer meanwhile.
    """
    tenth = max(1, len(held) // 10)
    fall = float(held[:tenth].mean() - held[-tenth:].mean())
    x = np.arange(len(held)) / len(held)
    sway = 2 * float(np.std(held - np.polyval(np.polyfit(x, held, 1), x)))
    return fall >= FALL * more and sway <= more


def rising_backlog(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line that is freed in bulk again and again, each time to a higher level."""
    born, died = lives.born[line], lives.died[line]
    moments = born[np.linspace(0, len(born) - 1, MOMENTS).astype(np.int64)].astype(np.float64)
    levels = alive_at(moments, born, died)
    troughs = troughs_of(levels, RULES.backlog * float(levels.max()))
    if len(troughs) < RULES.fewest_troughs:
        return None
    low = levels[troughs]
    falling = np.count_nonzero(np.triu(low[:, None] >= low, 1))
    if falling > len(low) - RULES.fewest_troughs or troughs[-1] < RULES.reach * len(levels):
        return None
    rise = float(low[-1] - low[0])
    if rise < RULES.few_survivors:
        return None
    x = (troughs - troughs[0]) / (troughs[-1] - troughs[0])
    if float(np.max(np.abs((low - low[0]) / rise - x))) > RULES.unevenness:
        return None
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    rows = line[died > end_ns]
    if len(rows) < rise or not lasts(lives, line):
        return None
    if not are_enough(len(rows), held_by_most(lives.size[rows], lives.weight[rows])):
        return None
    return site_of(lives, group, line, rows, "backlog")


def troughs_of(levels: Floats, least: float) -> Rows:
    """Positions of the troughs, where a curve has fallen and rises again by ``least`` or more."""
    troughs = []
    top = low = 0
    falling = False
    for position in range(1, len(levels)):
        if falling:
            if levels[position] < levels[low]:
                low = position
            elif levels[position] - levels[low] >= least:
                troughs.append(low)
                falling, top = False, position
        elif levels[position] > levels[top]:
            top = position
        elif levels[top] - levels[position] >= least:
            falling, low = True, position
    return np.array(troughs, np.int64)


def larger_values(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line whose objects are replaced by larger ones, several at a time.

    Few bytes matter where each of them is what was there, joined with what came, as a cache of keys
    and values has it for each layer: values of a larger problem are not.
    """
    born, died, size = lives.born[line], lives.died[line], lives.size[line]
    end_ns = max(int(born[-1]), lives.unwinding_ns)
    rows = line[died > end_ns]
    held = int(lives.size[rows].sum())
    if len(rows) < RULES.fewest_values or held < RULES.least_bytes_of_few:
        return None
    after, count = alive_at(born, born, died, size), alive_at(born, born, died) - 1
    floor = floor_curve(np.append(after[1:] - size[1:], held))
    if floor[len(line) // 10] * RULES.least_factor > held:
        return None
    if len(rows) > RULES.more_values * int(count[len(line) // 4 :].min()):
        return None
    most = held_by_most(lives.size[rows], lives.weight[rows])
    if most < RULES.least_bytes_of_values:
        _, of_each_size = np.unique(size, return_counts=True)
        if not is_joined(lives, line, values=int(np.median(of_each_size))):
            return None
    if not lasts(lives, line):
        return None
    share = (floor - floor[0]) / (held - floor[0])
    if not rises_on_clocks(lives, line, share):
        return None
    return site_of(lives, group, line, rows, "larger")


def renewed(lives: Lifetimes, group: int, line: Rows) -> GrowingSite | None:
    """The growth of a line of which more and more are alive, each soon in another one's place.

    What holds them becomes more, and each lets go of one when it gets the next: hooks that pile up,
    say, and keep the last output. Of sessions that end after a while the number is even once the
    first have ended, so most of those alive shortly before the end must be gone then.
    """
    born, died, time = lives.born[line], lives.died[line], lives.clocks[0, line]
    # At the last birth the former ones may be alive beside them, as in a list that is made anew.
    stays = died > max(int(lives.born[-1]), lives.unwinding_ns)
    rows, whole = line[stays], time[-1] - time[0]
    if not are_enough(len(rows), held_by_most(lives.size[rows], lives.weight[rows])):
        return None
    parts = time[-1] - whole / GENERATIONS, time[0] + EARLY * whole
    before, early = np.searchsorted(time, parts).clip(max=len(line) - 1).tolist()
    shortly = born[before]
    then = (born <= shortly) & (died > shortly)
    if np.count_nonzero(then & stays) >= RULES.majority * np.count_nonzero(then):
        return None
    floor = floor_curve(np.append(alive_at(born, born, died)[1:] - 1, len(rows)))
    if floor[early] * RULES.least_factor > len(rows) or not lasts(lives, line):
        return None
    if not rises_on_clocks(lives, line, (floor - floor[0]) / (len(rows) - floor[0])):
        return None
    return site_of(lives, group, line, rows, "renewed")


def site_of_joined(lives: Lifetimes, found: Enlargement) -> GrowingSite:
    """The growth of a line to whose last array, or arrays, all was joined that came."""
    return site_of(lives, found.group, found.rows, found.rows[-found.values :], "joined")


def growing_together(lives: Lifetimes) -> list[GrowingSite]:
    """Lines that only together keep ever more large objects, and none of them most of these."""
    large = np.flatnonzero(lives.size >= RULES.least_bytes_of_few)
    if len(large) < RULES.fewest_survivors:
        return []
    whole = judge_line(lives, -1, large, chance=False)
    if whole is None or whole.rows is None:
        return []
    groups, counts = np.unique(lives.group[whole.rows], return_counts=True)
    if len(groups) < RULES.fewest_lines:
        return []
    return [
        site_of(
            lives,
            group,
            large[lives.group[large] == group],
            whole.rows[lives.group[whole.rows] == group],
            "together",
        )
        for group in groups[counts > 1].tolist()
    ]


def lasts(lives: Lifetimes, line: Rows) -> bool:
    """Whether a line works until the end of the program's run."""
    return reaches_the_end(lives, line, int(lives.born[line[-1]]))


def rises_on_clocks(lives: Lifetimes, line: Rows, share: Floats) -> bool:
    """Whether a share of a rise that is reached at each birth of a line rises evenly to the end."""

    def on(clock: int) -> Checks:
        checks, ticks = Checks(), lives.clocks[clock, line]
        x = np.clip((ticks - ticks[0]) / max(ticks[-1] - ticks[0], 1e-9), 0, 1)
        even(checks, x, share, RULES.unevenness)
        return checks

    return votes(Checks(), own_shares(lives, line), on)


def site_of(lives: Lifetimes, group: int, line: Rows, rows: Rows, manner: str) -> GrowingSite:
    """The growth of a line that keeps ``rows``."""
    sites, counts = np.unique(lives.site[rows], return_counts=True)
    held = int(lives.size[rows].sum())
    return GrowingSite(
        group=group,
        survivors=len(rows),
        made=len(line),
        bytes=held,
        first_ns=int(lives.born[line[0]]),
        judged_ns=int(lives.born[line[-1]]),
        site=int(sites[np.argmax(counts)]),
        example=int(lives.ordinal[rows[0]]),
        rate=rate_of_line(lives, line, len(rows), held),
        manner=manner,
        rows=rows,
    )
