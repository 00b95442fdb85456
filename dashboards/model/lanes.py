"""Lifetimes at every level of detail: what lines hold over time, and single objects.

Covers: an index built once, from which any stretch of time is answered quickly, however many
objects there are: of each line its births and deaths in time order with sums, so that what is alive
at a moment is two look-ups. Does not cover: how lanes are drawn (``widgets.lanes``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places
from tlmem.recording.reader import Recording

from .ordering import falling, rising
from .view import View

NEVER = np.iinfo(np.int64).max
SORTS = ("born", "size", "age")
"""Orders of single objects: as they were made, largest first, longest life first."""

MOST_LANES = 10_000
"""A lane for each line is made anew for each stretch of time: lines with less have none."""
MOST_COLOURED = 6
"""So many lines, those with most bytes over the run, have colours of their own."""
RANKED_BY = 256
"""Lines are ranked by what they hold at so many moments of the run."""
MOMENTS = 1 << 14
FINE = 4
"""The most that is alive is kept for so many stretches of the run; a column of a picture that is at
least ``FINE`` of them wide is answered from there."""
MOST_AT_ONCE = 1 << 20
"""Births and deaths that are put in order at once."""
MOST_CELLS = 1 << 22
"""Sums of every site and thread are kept for at most so many pairs of them."""

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
"""Positions of objects: there are several orders of all of them."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LineLane:
    """One line over a stretch of time: bytes and objects alive at the end of each column.

    ``made`` counts objects made in each column; ``highest_bytes`` is the most in any column.
    """

    line: int
    frame: StackFrame
    live_bytes: Floats
    live_count: Floats
    made: Floats

    @property
    def highest_bytes(self) -> float:
        """The most bytes at the end of any column."""
        return float(self.live_bytes.max(initial=0.0))


@dataclass(frozen=True)
class _Side:
    """Births, or deaths: times in order within each line, sums before each, where lines begin."""

    time_ns: Ints
    sums: Ints
    starts: Ints

    def until(self, line: int, edges: Ints) -> tuple[Floats, Floats]:
        """Bytes and objects of a line up to each edge."""
        low, high = int(self.starts[line]), int(self.starts[line + 1])
        at = low + np.searchsorted(self.time_ns[low:high], edges, side="right")
        return (self.sums[at] - self.sums[low]).astype(float), (at - low).astype(float)


class Lanes:
    """The index of one recording. Building it reads the table of objects once."""

    def __init__(self, recording: Recording, places: Places) -> None:
        objects = recording.objects
        self.places = places
        born = objects["born_ns"].to_numpy(np.int64)
        died = objects["died_ns"].to_numpy(np.int64)
        in_order = not (born[1:] < born[:-1]).any()
        order = slice(None) if in_order else rising(born)
        self.number = objects.index.to_numpy(np.int64)[order]
        self.born = born[order]
        self.died = np.where(died[order] < 0, NEVER, died[order])
        self.size = objects["size_bytes"].to_numpy(np.int64)[order]
        self.site = objects["born_site"].to_numpy(np.int64)[order]
        self.thread = objects["born_thread"].to_numpy()[order]
        sites = np.where(self.site < len(places.group_of_site), self.site, 0)
        self.line = places.group_of_site[sites]
        self._small = self.line.astype(np.uint16) if places.count < 1 << 16 else self.line
        self._by_line = np.argsort(self._small, kind="stable").astype(np.int32)
        counts = np.bincount(self.line, minlength=places.count)
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._births = self._side(self._by_line, self.born, self._starts)
        dead = np.flatnonzero(self.died != NEVER)
        dead = dead[rising(self.died[dead])]
        dead = dead[np.argsort(self._small[dead], kind="stable")]
        gone = np.bincount(self.line[dead], minlength=places.count)
        self._deaths = self._side(dead, self.died, np.concatenate([[0], np.cumsum(gone)]))

    def prepare(self) -> None:
        """Computes what is kept: sums of threads, and all objects in every order."""
        _ = self._all, self._largest_first, self._oldest_first, self._of_threads
        _ = self.coloured, self._highest_kept

    def __len__(self) -> int:
        return len(self.number)

    def _side(self, rows: Ints | Rows | slice, times: Ints, starts: Ints) -> _Side:
        sums = np.concatenate([[0], np.cumsum(self.size[rows])])
        return _Side(times[rows], sums, starts)

    def lines(self, view: View, width: int) -> list[LineLane]:
        """A lane for each line that has objects in a stretch of time, most bytes first."""
        edges = np.linspace(view.start_ns, view.stop_ns, max(width, 1) + 1).astype(np.int64)
        found = []
        for line in self._shown_lines:
            born_bytes, born = self._births.until(line, edges)
            died_bytes, died = self._deaths.until(line, edges)
            live = born - died
            made = np.diff(born)
            if not (live.any() or made.any()):
                continue
            found.append(
                LineLane(
                    line,
                    self.places.frames[line],
                    (born_bytes - died_bytes)[1:],
                    live[1:],
                    made,
                )
            )
        found.sort(key=lambda lane: (lane.highest_bytes, lane.live_count.max()), reverse=True)
        return found

    def objects(self, view: View, line: int | None, sort: str = "born") -> Rows:
        """Rows of the objects that lived in a stretch of time, of one line or of all.

        Args:
            sort: of ``SORTS``.
        """
        rows = self._sorted(line, sort)
        if view.is_whole:
            return rows
        if line is not None:
            inside = (self.born[rows] <= view.stop_ns) & (self.died[rows] >= view.start_ns)
            return rows[inside]
        last = int(np.searchsorted(self.born, view.stop_ns, side="right"))
        inside = self.died[:last] >= view.start_ns
        if sort == "born":
            return np.flatnonzero(inside).astype(np.int32)
        inside = np.concatenate([inside, np.zeros(len(self) - last, bool)])
        return rows[inside[rows]]

    def _sorted(self, line: int | None, sort: str) -> Rows:
        """All rows of a line, or of all, in an order; the one of all is kept."""
        rows = self._rows_of(line)
        if sort == "born":
            return rows
        if line is None:
            return self._largest_first if sort == "size" else self._oldest_first
        return rows[falling(self.size[rows] if sort == "size" else self._age(rows))]

    @cached_property
    def _all(self) -> Rows:
        return np.arange(len(self), dtype=np.int32)

    @cached_property
    def _largest_first(self) -> Rows:
        return falling(self.size).astype(np.int32)

    @cached_property
    def _oldest_first(self) -> Rows:
        return falling(self._age(slice(None))).astype(np.int32)

    def _age(self, rows: Rows | slice) -> Ints:
        """How long objects lived; what is alive counts as if it died last of all."""
        return np.minimum(self.died[rows], self._end + 1) - self.born[rows]

    @cached_property
    def _end(self) -> int:
        """The last birth or death."""
        last = self.died.max(initial=0, where=self.died != NEVER)
        return max(int(self.born.max(initial=0)), int(last))

    def row_of(self, number: int) -> int | None:
        """The row of an object by its number; None when the recording does not list it."""
        at = np.flatnonzero(self.number == number)
        return int(at[0]) if len(at) else None

    def sums(self, view: View) -> tuple[Ints, Floats]:
        """Sites that made something in a stretch of time, of the thread of the view or of all.

        Returns:
            Numbers of sites, and a row for each: bytes made there and alive at the end, bytes made,
            objects made, bytes made and freed again.
        """
        if view.is_whole and view.thread in self._of_threads:
            return _used(self._of_threads[view.thread])
        first = int(np.searchsorted(self.born, view.start_ns, side="left"))
        last = int(np.searchsorted(self.born, view.stop_ns, side="right"))
        alive = first + np.flatnonzero(self.died[first:last] > view.stop_ns)  # so is NEVER
        site, size = self.site[first:last], self.size[first:last]
        if view.thread is not None:
            mine = np.flatnonzero(self.thread[first:last] == view.thread)
            site, size = site[mine], size[mine]  # by positions: a third of the time of a mask
            alive = alive[self.thread[alive] == view.thread]
        count = int(site.max(initial=0)) + 1
        return _used(_sums(site, size, self.site[alive], self.size[alive], count))

    def freed_since(self, moment_ns: int, thread: int | None) -> Floats:
        """Bytes of each site that were alive at a moment and have been freed since, less what was
        made since and is alive at the end; of a thread or of all."""
        there, stays = self.born <= moment_ns, self.died == NEVER
        rows = np.flatnonzero(np.where(there, (self.died > moment_ns) & ~stays, stays))
        if thread is not None:
            rows = rows[self.thread[rows] == thread]
        signed = np.where(there[rows], self.size[rows], -self.size[rows])
        count = int(self.site.max(initial=0)) + 1
        return np.bincount(self.site[rows], weights=signed, minlength=count).astype(np.float64)

    @cached_property
    def _of_threads(self) -> dict[int | None, Floats]:
        """The sums of every site over the whole recording, by thread."""
        which, threads = pd.factorize(self.thread)
        count = int(self.site.max(initial=0)) + 1
        if len(threads) * count > MOST_CELLS:
            return {}
        cell = which * count + self.site
        alive = np.flatnonzero(self.died == NEVER)
        sums = _sums(cell, self.size, cell[alive], self.size[alive], len(threads) * count)
        return {
            int(thread): sums[at * count : (at + 1) * count] for at, thread in enumerate(threads)
        }

    def at(self, line: int, time_ns: int) -> tuple[float, float]:
        """Bytes and objects of a line that are alive at a moment."""
        edges = np.array([time_ns], np.int64)
        made, freed = self._births.until(line, edges), self._deaths.until(line, edges)
        return float(made[0][0] - freed[0][0]), float(made[1][0] - freed[1][0])

    def all_at(self, time_ns: int) -> tuple[float, float]:
        """Bytes and objects of all lines that are alive at a moment."""
        edges = np.array([time_ns], np.int64)
        made, freed = (side.until(0, edges) for side in self._of_all)
        return float(made[0][0] - freed[0][0]), float(made[1][0] - freed[1][0])

    def total(self, view: View, width: int) -> Floats:
        """Bytes alive in all at the end of each column."""
        edges = np.linspace(view.start_ns, view.stop_ns, max(width, 1) + 1).astype(np.int64)[1:]
        made, freed = self._of_all
        return made.until(0, edges)[0] - freed.until(0, edges)[0]

    def of_line(self, line: int, view: View, width: int) -> Floats:
        """Bytes of a line that are alive at the end of each column."""
        edges = np.linspace(view.start_ns, view.stop_ns, max(width, 1) + 1).astype(np.int64)[1:]
        return self._births.until(line, edges)[0] - self._deaths.until(line, edges)[0]

    @property
    def line_count(self) -> int:
        """How many lines may have lanes."""
        return len(self._shown_lines)

    @cached_property
    def coloured(self) -> tuple[int, ...]:
        """The lines that have colours of their own, in their order: most bytes on average first."""
        whole = View.whole(self._end)
        means = [
            (float(self.of_line(line, whole, RANKED_BY).mean()), line) for line in self._shown_lines
        ]
        ranked = sorted(means, key=lambda each: (-each[0], each[1]))[:MOST_COLOURED]
        return tuple(line for mean, line in ranked if mean > 0)

    def highest(self, view: View, width: int) -> Floats:
        """The most bytes that are alive at once in each column."""
        edges = np.linspace(view.start_ns, view.stop_ns, max(width, 1) + 1)
        step, kept = self._highest_kept
        if (edges[1] - edges[0]) < FINE * step:
            return self._highest_between(edges.astype(np.int64))
        first = (edges[:-1] / step).astype(np.int64).clip(0, len(kept) - 1)
        last = np.ceil(edges[1:] / step).astype(np.int64).clip(first + 1, len(kept))
        return _highest_of(kept, first, last)

    @cached_property
    def _highest_kept(self) -> tuple[float, Floats]:
        """How long a stretch is, and the most bytes that are alive at once in each; then those that
        stay alive."""
        step = max(self._end / MOMENTS, 1.0)
        edges = (np.arange(MOMENTS + 1) * step).astype(np.int64)
        edges[-1] = max(edges[-1], self._end)
        parts = min(-(-2 * len(self) // MOST_AT_ONCE) + 1, MOMENTS)
        cuts = np.linspace(0, MOMENTS, parts + 1).astype(int)
        found = [
            self._highest_between(edges[low : high + 1])
            for low, high in zip(cuts[:-1], cuts[1:], strict=True)
        ]
        births, deaths = self._of_all
        return step, np.concatenate([*found, [births.sums[-1] - deaths.sums[-1]]])

    def _highest_between(self, edges: Ints) -> Floats:
        """The most bytes that are alive at once between each two edges.

        Of births and deaths in the same nanosecond deaths come first: what was never alive together
        is not counted together.
        """
        births, deaths = self._of_all
        times, changes, level = [], [], 0.0
        for side, sign in ((deaths, -1.0), (births, 1.0)):
            low, high = np.searchsorted(side.time_ns, edges[[0, -1]], side="right").tolist()
            times.append(side.time_ns[low:high])
            changes.append(sign * np.diff(side.sums[low : high + 1]))
            level += sign * float(side.sums[low])
        time_ns = np.concatenate(times)
        order = np.argsort(time_ns, kind="stable")
        steps = np.concatenate([[level], np.concatenate(changes)[order]])
        at = np.searchsorted(time_ns[order], edges, side="right")
        return _highest_of(np.cumsum(steps), at[:-1], at[1:] + 1)

    @cached_property
    def _of_all(self) -> tuple[_Side, _Side]:
        """Births and deaths of all lines together."""
        dead = np.flatnonzero(self.died != NEVER)
        dead = dead[rising(self.died[dead])]
        births, deaths = (np.array([0, count]) for count in (len(self), len(dead)))
        return self._side(slice(None), self.born, births), self._side(dead, self.died, deaths)

    @cached_property
    def _shown_lines(self) -> list[int]:
        """The lines that made something, in order; of more than ``MOST_LANES`` the largest."""
        starts = self._starts
        made = np.flatnonzero(np.diff(starts))
        if len(made) > MOST_LANES:
            bytes_ = self._births.sums[starts[made + 1]] - self._births.sums[starts[made]]
            made = np.sort(made[np.argsort(-bytes_, kind="stable")[:MOST_LANES]])
        return made.tolist()

    def _rows_of(self, line: int | None) -> Rows:
        if line is None:
            return self._all
        return self._by_line[self._starts[line] : self._starts[line + 1]]


def _highest_of(values: Floats, first: Ints, until: Ints) -> Floats:
    """The highest of ``values[first:until]`` for each pair; none of the stretches is empty."""
    pairs = np.stack([first, until], axis=1).ravel()
    return np.maximum.reduceat(np.append(values, values[-1]), pairs)[::2]


def _sums(site: Ints, size: Ints, alive_site: Ints, alive_size: Ints, count: int) -> Floats:
    """Of each of so many sites, bytes alive, made, objects, bytes freed."""
    made = np.bincount(site, minlength=count)
    bytes_ = np.bincount(site, weights=size, minlength=count)
    kept = np.bincount(alive_site, weights=alive_size, minlength=count)
    return np.stack([kept, bytes_, made, bytes_ - kept], axis=1).astype(np.float64)


def _used(sums: Floats) -> tuple[Ints, Floats]:
    """The sites that made something, and their sums."""
    sites = np.flatnonzero(sums[:, 2])
    return sites, sums[sites]
