"""Leaks that the runtime counts exactly: a finding from the first object on, whatever the trend.

An object whose one count belongs to nobody at the end of the run will never be freed, and a scope
that was not left will never free what is registered in it. Neither needs to grow to be a fault.

Covers: floating objects, and scopes of the main thread, at the end of a run that ended by itself.
Does not cover: lines that grow for the same reason, which have their class; see ``ownership``.
Threads that still run: they may leave their scopes. Runs that were killed: what they were about to
register is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER, Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, place
from tlmem.events import HolderKind
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SCOPES = (int(HolderKind.SCOPE), int(HolderKind.FRAME))


def exact_findings(
    recording: Recording, places: Places, lives: Lifetimes, growing: Collection[int]
) -> list[Finding]:
    """One finding for each line whose objects float, or are in scopes that were not left.

    None when events are lost or missing, or the program did not reach its end.

    Args:
        growing: the groups of lines that grow; these findings are made of the other lines.
    """
    if recording.lost_events or recording.missing_events or recording.end_ns is None:
        return []
    if lives.folded or not lives.runtime.any():
        return []
    ledger = recording.holders
    open_rows = ledger.loc[ledger["end_ns"] < 0, ["object", "kind", "number"]]
    if not open_rows["kind"].isin((int(HolderKind.FLOATING), *SCOPES)).any():
        return []
    floating = open_rows["kind"] == int(HolderKind.FLOATING)
    left_alone = np.setdiff1d(open_rows.loc[floating, "object"], open_rows.loc[~floating, "object"])
    scopes, threads = recording.scopes, recording.threads
    main = threads.index[threads["main"]]
    entered = scopes.index[(scopes["exit_ns"] < 0) & scopes["thread"].isin(main)]
    in_scopes = open_rows[open_rows["kind"].isin(SCOPES) & open_rows["number"].isin(entered)]
    return [
        *by_line(lives, places, growing, left_alone, "floating", floats),
        *by_line(
            lives,
            places,
            growing,
            in_scopes["object"].unique(),
            "scope-not-left",
            lambda what: waits(what, scopes.loc[in_scopes["number"].unique()], places),
        ),
    ]


def by_line(
    lives: Lifetimes,
    places: Places,
    growing: Collection[int],
    objects: NDArray[np.int64],
    kind: str,
    say: Callable[[str], str],
) -> list[Finding]:
    """A finding for each line that made some of these objects and does not grow."""
    rows = np.flatnonzero(np.isin(lives.ordinal, objects) & (lives.died == NEVER))
    found = []
    for group in np.unique(lives.group[rows]).tolist():
        if group not in growing:
            mine = rows[lives.group[rows] == group]
            found.append(finding_of(lives, places, group, mine, kind, say))
    return found


def finding_of(
    lives: Lifetimes,
    places: Places,
    group: int,
    rows: NDArray[np.int64],
    kind: str,
    say: Callable[[str], str],
) -> Finding:
    """The finding about one line."""
    held, frame = int(lives.size[rows].sum()), places.frames[group]
    what = (
        f"{format_count(len(rows))} object{'s' if len(rows) != 1 else ''} allocated at "
        f"{place(frame)}, {format_bytes(held)},"
    )
    return Finding(
        kind=kind,
        severity="warning",
        count=len(rows),
        bytes=held,
        evidence=say(what),
        object=int(lives.ordinal[rows[0]]),
        site=frame,
        stack=places.stack(int(lives.site[rows[0]])),
    )


def floats(what: str) -> str:
    """What is said of floating objects."""
    return f"{what} had no holder when the program ended: nothing will free them."


def waits(what: str, scopes: pd.DataFrame, places: Places) -> str:
    """What is said of objects in scopes that were not left."""
    sites, counts = np.unique(scopes["enter_site"].to_numpy(np.int64), return_counts=True)
    entered = place(places.blamed_frame(int(sites[np.argmax(counts)])))
    return f"{what} wait for the end of a scope that was entered at {entered} and never left."
