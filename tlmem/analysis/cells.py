"""Code without a file that stays: cells of a notebook, doctests, texts given to ``exec``.

Each run of such code may have a file name of its own (``<ipython-input-7-…>``), so that no line of
it is ever seen twice. What is run once is *brief*; many brief pieces of code with the same caller
are one place: the line that runs them, or, where a notebook or doctest does, code cells. A piece
that makes arrays for long (a cell with a loop in it, a function that other cells call, one text
that is run again and again) keeps its own lines.

Covers: which sites belong to such a place. Does not cover: names of places (``places``), whether
what they make is kept (``growth``), who keeps it (``holders``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.rules import RULES

_OF_LIBRARY = re.compile(
    r".*[/\\](site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]", re.S | re.I
)
"""Files of libraries: where no frame is the program's, the innermost one of these is blamed."""
_WITHOUT_FILE = re.compile(r"<(?!frozen )|.*[/\\]ipykernel_\d+[/\\][^/\\]*$", re.DOTALL)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Pieces of code that one line runs: how many, the ``sites`` in them, and that line's site.

    ``caller`` is 0 where a library runs them: IPython, doctest, a console.
    """

    count: int
    caller: int
    sites: Ints


def is_stable(file: str) -> bool:
    """Whether a place in this file means the same in the next run, and for the next cell."""
    return _WITHOUT_FILE.match(file) is None


def cells_of(
    files: Mapping[int, str], blamed: Ints, parents: Ints, callers: Mapping[int, object], made: Ints
) -> list[Cells]:
    """The places that brief pieces of code with the same caller are.

    Args:
        files: of each site.
        blamed, parents: of each site the blamed one and the caller's, see ``Places``.
        callers: of each site what is the same for sites of one line.
        made: the site of each object, in order of birth.
    """
    without = {site for site, file in files.items() if not is_stable(file)}
    known: dict[int, int] = {}
    units: dict[tuple[object, str], list[int]] = {}
    run_at: dict[object, int] = {}
    for site in range(len(blamed)):
        target = int(blamed[site])
        if target not in without:
            continue
        if target not in known:
            runner = _runner_of(target, without, blamed, parents)
            known[target] = 0 if _OF_LIBRARY.match(files.get(runner, "")) else runner
        runner = known[target]
        line = callers[runner] if runner else None
        run_at.setdefault(line, runner)
        units.setdefault((line, files[target]), []).append(site)
    brief: dict[object, list[list[int]]] = {}
    are_brief = _brief(list(units.values()), len(blamed), made)
    for ((line, _), sites), is_brief in zip(units.items(), are_brief, strict=True):
        if is_brief:
            brief.setdefault(line, []).append(sites)
    return [
        Cells(len(mine), run_at[line], np.concatenate(mine).astype(np.int64))
        for line, mine in brief.items()
        if len(mine) >= RULES.few_survivors
    ]


def _runner_of(site: int, without: set[int], blamed: Ints, parents: Ints) -> int:
    """The site of the nearest line with a stable file that runs the code; 0: a library does."""
    outermost = site
    site = int(parents[site])
    while site > 1:
        if site in without:
            outermost = site
        elif blamed[site] == site:
            return site if int(parents[outermost]) == site else 0
        site = int(parents[site])
    return 0


def _brief(units: list[list[int]], size: int, made: Ints) -> list[bool]:
    """Which units made something, all of it within a short part of what was made at all."""
    unit_of = np.full(size + 1, -1, np.int64)
    for number, sites in enumerate(units):
        unit_of[sites] = number
    unit = unit_of[np.where((made >= 0) & (made < size), made, size)]
    at = np.flatnonzero(unit >= 0)
    first, last = np.full(len(units), len(made)), np.full(len(units), -1)
    np.minimum.at(first, unit[at], at)
    np.maximum.at(last, unit[at], at)
    return ((last >= first) & (last - first <= RULES.brief * len(made))).tolist()
