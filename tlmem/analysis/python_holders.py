"""Findings about lines, with the Python objects that kept what the line made.

Covers: growing lines and what is alive at the end. Does not cover: leak classes, which have theirs
from ``kept``; holders of the runtime (``keepers``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tlmem.analysis.growth import Growth
from tlmem.analysis.keepers import KINDS, together
from tlmem.analysis.kept import Ints, survivors
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places
from tlmem.analysis.snapshots import Snapshots, holders_of


def with_python_holders(
    findings: list[Finding], lives: Lifetimes, places: Places, growths: list[Growth]
) -> list[Finding]:
    """The findings; the example of each is an object that a snapshot names, where it names one."""
    snapshots = Snapshots(places.recording)
    if not snapshots:
        return findings
    growing = {(places.frames[growth.group], growth.survivors): growth for growth in growths}
    named = rows_of(lives, snapshots.objects)
    alive = named[(lives.born[named] <= lives.judged_ns) & (lives.died[named] > lives.judged_ns)]
    told = []
    for finding in findings:
        if finding.kind not in KINDS or finding.site is None:
            told.append(finding)
            continue
        growth = growing.get((finding.site, finding.count))
        growth = growth if finding.kind == "growing-site" else None
        rows = (
            survivors(places, lives, growth, named)
            if growth is not None
            else alive[lives.group[alive] == places.frames.index(finding.site)]
        )
        told.append(with_chains(finding, lives.ordinal[rows], snapshots))
    return told


def rows_of(lives: Lifetimes, objects: Ints) -> Ints:
    """The rows of those objects (numbers, rising) that are the program's own."""
    at = np.searchsorted(lives.ordinal, objects)
    there = at < len(lives)
    there[there] = lives.ordinal[at[there]] == objects[there]
    return at[there]


def with_chains(finding: Finding, objects: Ints, snapshots: Snapshots) -> Finding:
    """A finding about some objects (numbers, rising) with the chains that held them."""
    chains = snapshots.chains_of(objects)
    if not chains:
        return finding
    return replace(
        finding,
        object=int(chains[0].objects[0]),
        holders=together(finding.holders, holders_of(chains)),
    )
