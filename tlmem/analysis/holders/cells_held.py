"""Cells whose arrays are variables with names of their own: results, and no habit.

A notebook has one run of each cell, and most of them make something that it keeps: by a name that
somebody chose. What cells leave in a container, such as ``Out``, or in variables that are numbered
(``_7``, ``_8``, ...), nobody chose.

Covers: growing code cells whose survivors snapshots saw. Does not cover: lines, which run many
times and leave what they make wherever they do.
"""

from __future__ import annotations

import re
from collections import Counter

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.holders.snapshots import Snapshots
from tlmem.analysis.holders.survivors import surviving_rows
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES

_DIGITS = re.compile(r"\d+")


def without_results(
    growths: list[GrowingSite], lives: Lifetimes, places: Places
) -> list[GrowingSite]:
    """The growths, without code cells that leave variables with names of their own."""
    of_cells = [growth for growth in growths if places.frames[growth.group].cells]
    if not of_cells:
        return growths
    snapshots = Snapshots(places.recording)
    results = {id(growth) for growth in of_cells if are_results(growth, lives, places, snapshots)}
    return [growth for growth in growths if id(growth) not in results]


def are_results(
    growth: GrowingSite, lives: Lifetimes, places: Places, snapshots: Snapshots
) -> bool:
    """Whether most survivors that a snapshot saw are in variables with names of their own."""
    rows = growth.rows if growth.rows is not None else surviving_rows(lives, growth)
    chains = snapshots.chains_of(lives.ordinal[rows])
    if sum(len(chain.objects) for chain in chains) < RULES.fewest_survivors:
        return False
    variables: Counter[str] = Counter()
    kept = 0
    for chain in chains:
        if chain.items:
            kept += chain.arrays
        else:
            name, _, way = chain.text.partition(" -> ")
            variables[f"{_DIGITS.sub('#', name)} -> {way}"] += chain.arrays
    whole = kept + variables.total()
    chosen = variables.total() - max(variables.values(), default=0)
    return chosen > RULES.majority * whole
