"""Who keeps what a line makes: the holders of its live objects, in words.

Covers: objects of a runtime, whose holders have names. Does not cover: holders in Python, which
snapshots name (``python_holders``); which line it is (``growth``, ``leaks``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, Holder
from tlmem.analysis.places import Places
from tlmem.events import HOLDER_NAMES

MOST_HOLDERS = 5
NOT_KNOWN = "a holder that is not in the recording"
KINDS = ("growing-site", "live-at-end")
"""Findings about the objects of one line."""


def with_holders(findings: list[Finding], lives: Lifetimes, places: Places) -> list[Finding]:
    """The findings, those about lines with the holders of what is alive there when judged."""
    alive = lives.runtime & (lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns)
    groups = {places.frames.index(f.site) for f in findings if f.kind in KINDS and f.site}
    rows = np.flatnonzero(alive)
    rows = rows[np.isin(lives.group[rows], list(groups))]
    if not len(rows):
        return findings
    held = places.recording.held_at(lives.ordinal[rows], lives.judged_ns)
    at = np.searchsorted(lives.ordinal[rows], held["object"].to_numpy(np.int64))
    group = lives.group[rows][at]
    alive_in = np.bincount(lives.group[rows], minlength=places.count)
    kept = {
        number: holders_in(held[group == number], int(alive_in[number]), places)
        for number in groups
    }
    return [
        replace(finding, holders=kept[places.frames.index(finding.site)])
        if finding.kind in KINDS and finding.site
        else finding
        for finding in findings
    ]


def holders_in(held: pd.DataFrame, alive: int, places: Places) -> tuple[Holder, ...]:
    """The holders of most objects first, each with the line where it took most of them.

    Of objects that were taken in events that a size limit folded, the holders are not known.
    """
    found = []
    folded = alive - held["object"].nunique()
    if folded:
        found.append(Holder("none", NOT_KNOWN, None, folded))
    counts = held.groupby("holder", sort=True)["object"].nunique()
    # Holders may be as many as objects: only those that are shown are looked at one by one.
    most = counts.sort_values(ascending=False, kind="stable").head(MOST_HOLDERS)
    held = held[held["holder"].isin(most.index)]
    for name, part in held.groupby("holder", sort=True):
        kind = HOLDER_NAMES.get(int(part["kind"].iloc[0]), "unknown")
        site = int(part["site"].mode().iloc[0])
        known = 0 < site < len(places.group_of_site)
        frame = places.frames[places.group_of_site[site]] if known else None
        found.append(Holder(kind, str(name), frame, int(most[name])))
    found.sort(key=lambda holder: -holder.count)
    return tuple(found[:MOST_HOLDERS])


def together(named: tuple[Holder, ...], python: tuple[Holder, ...]) -> tuple[Holder, ...]:
    """Holders by name, then those in Python: ``MOST_HOLDERS`` at most, of either kind some."""
    room = MOST_HOLDERS - min(len(python), MOST_HOLDERS // 2)
    named = named[:room]
    return (*named, *python[: MOST_HOLDERS - len(named)])
