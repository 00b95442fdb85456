"""What the program did wrong with objects of the runtime, by the runtime's own account.

Covers: one finding for each kind of misuse and line, with the stacks of the misuse, of the
allocation and of the free, or of the place that it collides with.
Does not cover: leaks; see ``growth``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.model import Finding, StackFrame
from tlmem.analysis.places import Places, place
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

ERRORS = (
    "use-after-free",
    "double-free",
    "over-release",
    "wrong-device",
    "past-the-end",
    "written-after-free",
)
"""Misuses that mean a bug in who owns what; the others lose or delay memory at most."""

WHAT = {
    "use-after-free": "an object was used after it had been freed",
    "double-free": "an object was freed that had been freed before",
    "over-release": "an object was released by a holder that did not hold it",
    "stale-record": "a record was found of an object that no longer exists",
    "double-register": "an object was registered in a scope that has it, which changes nothing",
    "unpaired-register": "an object was unregistered that is in no scope",
    "no-frame": "memory of a function's frame was requested where no frame is entered",
    "unbalanced-scope": "a scope was left that was not the innermost",
    "unbalanced-frame": "a frame was left that was not the innermost",
    "outlives-frame": "memory of a frame or arena was still held, or handed out, when it ended",
    "double-pool": "an object was put into a pool that holds it already",
    "pooled-while-held": "an object was in a pool, or put into one, while others held it",
    "wrong-device": "memory was used with, or freed on, a device that it is not from",
    "not-in-scope": "an object was to escape where no scope is entered",
    "in-place-on-saved": "an object was changed in place that a backward pass needs",
    "second-backward": "a backward pass was run a second time",
    "past-the-end": "memory behind an object was read or written",
    "written-after-free": "an object was written after it had been freed (at the line of the free)",
}

EARLIER = {
    "in-place-on-saved": "it had been saved at",
    "second-backward": "the last whole pass before it was at",
}
"""What the other place is, of misuses that are a collision of two."""


MOST_FINDINGS = 1000


def misuse_findings(recording: Recording, places: Places) -> list[Finding]:
    """One finding for each kind of misuse at each line, the most frequent first.

    Of more than ``MOST_FINDINGS`` those with the most misuses.
    """
    table = recording.misuses
    site = table["site"].to_numpy(np.int64)
    group = places.group_of_site[np.where(site < len(places.group_of_site), site, 0)]
    number = table.groupby([group, "misuse"], sort=True).ngroup().to_numpy(np.int64)
    most = np.argsort(-np.bincount(number), kind="stable")[:MOST_FINDINGS]
    chosen = np.isin(number, most)
    table, group, number = table[chosen], group[chosen], number[chosen]
    found = [
        finding_of(recording, places, places.frames[int(group[rows[0]])], table.iloc[rows])
        for _, rows in sorted(pd.Series(number).groupby(number).indices.items())
    ]
    found.sort(key=lambda finding: -finding.count)
    return [*found, *folded_misuses(recording, len(table))]


def finding_of(
    recording: Recording, places: Places, frame: StackFrame, rows: pd.DataFrame
) -> Finding:
    """What was done wrong in one way at one line; the first time is the example."""
    first = rows.iloc[0]
    kind = str(first["misuse"])
    times = "once" if len(rows) == 1 else f"{format_count(len(rows))} times"
    number = int(first["object"])
    made_at, freed_at = life_of(recording, number, int(first["time_ns"]))
    earlier = earlier_site(recording, first)
    made = (
        f"; object {number} was allocated at {place(places.blamed_frame(made_at))}"
        if made_at
        else ""
    )
    freed = f" and freed at {place(places.blamed_frame(freed_at))}" if made and freed_at else ""
    other = f"; {EARLIER[kind]} {place(places.blamed_frame(earlier))}" if earlier else ""
    holder = f"; by {first['holder']}" if first["holder"] else ""
    said = WHAT.get(kind, kind)
    return Finding(
        kind=kind,
        severity="error" if kind in ERRORS else "warning",
        count=len(rows),
        bytes=0,
        evidence=f"{said[0].upper()}{said[1:]}: {times}, at {place(frame)}{made}{freed}{other}"
        f"{holder}.",
        object=number if number >= 0 else None,
        site=frame if frame.file else None,
        stack=places.stack(int(first["site"])),
        allocated=places.stack(made_at) if made_at else (),
        freed=places.stack(freed_at) if freed_at else (),
        earlier=places.stack(earlier) if earlier else (),
    )


def life_of(recording: Recording, number: int, time_ns: int) -> tuple[int, int]:
    """Sites where an object was made and, if that was before a time, freed; 0 where not known."""
    if number not in recording.objects.index:
        return 0, 0
    row = recording.objects.index.get_indexer(pd.Index([number]))[0]
    born, died, died_ns = (
        int(recording.objects[name].iloc[row]) for name in ("born_site", "died_site", "died_ns")
    )
    return born, died if 0 <= died_ns <= time_ns else 0


def earlier_site(recording: Recording, misuse: pd.Series) -> int:
    """The site of the other place of two that collide; 0 where it is not known."""
    if misuse["misuse"] == "in-place-on-saved":
        table = recording.holders
        same = (table["object"] == misuse["object"]) & (table["holder"] == misuse["holder"])
        sites = table.loc[same & (table["begin_ns"] <= misuse["time_ns"]), "begin_site"]
    elif misuse["misuse"] == "second-backward":
        table = recording.passes
        whole = (table["status"] == 0) & (table["end_ns"] <= misuse["time_ns"])
        sites = table.loc[whole, "site"]
    else:
        return 0
    return int(sites.iloc[-1]) if len(sites) else 0


def folded_misuses(recording: Recording, listed: int) -> list[Finding]:
    """A finding when a size limit left only the number of some misuses."""
    fold = recording.fold or {}
    rest = fold.get("misuse_count", 0) - int((recording.misuses["thread"] == 0).sum())
    if rest <= 0:
        return []
    return [
        Finding(
            kind="misuse",
            severity="warning",
            count=rest,
            bytes=0,
            evidence=f"{format_count(rest)} misuses besides the {format_count(listed)} listed "
            "were folded by the size limit; their kinds and places are unknown.",
        )
    ]
