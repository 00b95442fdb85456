"""Findings about lines, with the Python objects that kept what the line made.

Covers: growing lines and what is alive at the end. Does not cover: leak classes, which have theirs
from ``survivors``; holders of the runtime (``runtime_holders``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.holders.runtime_holders import KINDS, together
from tlmem.analysis.holders.snapshots import Snapshots, holders_of
from tlmem.analysis.holders.survivors import Ints, surviving_rows
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places

GOOD_PART = 0.1
"""Share of a line's objects that the largest chain must have held to be the example's."""


def with_python_holders(
    findings: list[Finding], lives: Lifetimes, places: Places, growths: list[GrowingSite]
) -> list[Finding]:
    """The findings; where a chain held a good part of the objects, the example is one of these.

    A variable that held the last object of two thousand, say, only when a snapshot was taken, does
    not make that object an example of them.
    """
    snapshots = Snapshots(places.recording)
    if not snapshots:
        return findings
    growing = {(places.frames[growth.group], growth.survivors): growth for growth in growths}
    named = rows_of(lives, snapshots.objects)
    is_alive = (lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns)
    alive, alive_rows = named[is_alive[named]], np.flatnonzero(is_alive)
    found = []
    for finding in findings:
        if finding.kind not in KINDS or finding.site is None:
            found.append(finding)
            continue
        growth = growing.get((finding.site, finding.count))
        growth = growth if finding.kind == "growing-site" else None
        if growth is not None:
            asked = surviving_rows(lives, growth, named)
            every = growth.rows if growth.rows is not None else asked
        else:
            group = places.frames.index(finding.site)
            asked = alive[lives.group[alive] == group]
            every = alive_rows[lives.group[alive_rows] == group]
        found.append(with_chains(finding, lives, asked, every, snapshots))
    return found


def rows_of(lives: Lifetimes, objects: Ints) -> Ints:
    """The rows of those objects (numbers, rising) that are the program's own."""
    at = np.searchsorted(lives.ordinal, objects)
    there = at < len(lives)
    there[there] = lives.ordinal[at[there]] == objects[there]
    return at[there]


def with_chains(
    finding: Finding, lives: Lifetimes, asked: Ints, every: Ints, snapshots: Snapshots
) -> Finding:
    """A finding with the chains that held its objects.

    Args:
        asked: rows of ``lives``, rising: those of its objects that some snapshot names.
        every: all of its objects that are known one by one.
    """
    chains = snapshots.chains_of(lives.ordinal[asked])
    if not chains:
        return finding
    there = int(np.count_nonzero(lives.born[every] <= chains[0].time_ns))
    found = replace(finding, holders=together(finding.holders, holders_of(chains)))
    if chains[0].arrays < GOOD_PART * there:
        return found
    return replace(found, object=int(chains[0].objects[0]))
