"""What outlives its scope? For each label, objects made inside that are alive when it is left.

A scope that frees what was made in it is balanced; what outlives it was escaped, promoted or
acquired by another holder, which is meant for results and a leak when it goes on.

Covers: labels of ``tlmem.scope`` and of functions with frames, on the thread that entered them.
Does not cover: who holds what is left; see ``analysis.holders``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import ScopeGrowth

FEWEST_SCOPES = 8
"""With fewer scopes of a label that were left nothing is said about it."""
MOST_LABELS = 8
"""Labels in the report, those that keep most first."""

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]


def scopes_of(recording: Recording, lives: Lifetimes) -> tuple[ScopeGrowth, ...]:
    """What outlives the scopes of a recording, by label."""
    if len(recording.scopes) < FEWEST_SCOPES:
        return ()
    return growth_per_scope(recording.scopes, threads_of(recording, lives), lives)


def growth_per_scope(
    scopes: pd.DataFrame, threads: Ints, lives: Lifetimes
) -> tuple[ScopeGrowth, ...]:
    """What outlives the scopes of each label with enough of them, most kept bytes first.

    Args:
        scopes: the table of a recording.
        threads: the thread that made each object of ``lives``.
        lives: the objects.
    """
    left = scopes["exit_ns"].to_numpy(np.int64)
    scopes = scopes[(left >= 0) & (left <= lives.judged_ns)]
    if len(scopes) < FEWEST_SCOPES:
        return ()
    counts = scopes["label"].value_counts()
    found = [
        of_label(str(label), scopes[scopes["label"] == label], threads, lives)
        for label in counts[counts >= FEWEST_SCOPES].index
        if label
    ]
    found.sort(key=lambda growth: (-growth.kept_bytes, -growth.kept, -growth.made))
    return tuple(found[:MOST_LABELS])


def threads_of(recording: Recording, lives: Lifetimes) -> Ints:
    """The number of the thread that made each object; 0 of those that were folded and freed."""
    threads = recording.objects["born_thread"].reindex(lives.ordinal, fill_value=0)
    return threads.to_numpy(np.int64)


def of_label(label: str, scopes: pd.DataFrame, threads: Ints, lives: Lifetimes) -> ScopeGrowth:
    """What outlives the scopes of one label."""
    made = outlived = kept = held = 0
    for thread, table in scopes.groupby("thread"):
        begin, end = outermost(
            table["enter_ns"].to_numpy(np.int64), table["exit_ns"].to_numpy(np.int64)
        )
        rows = np.flatnonzero(threads == thread)
        inside = np.searchsorted(begin, lives.born[rows], "right") - 1
        rows, inside = rows[inside >= 0], inside[inside >= 0]
        within = lives.born[rows] <= end[inside]
        rows, inside = rows[within], inside[within]
        died, weight = lives.died[rows], lives.weight[rows]
        alive = died > lives.judged_ns
        made += int(weight.sum())
        outlived += int(weight[died > end[inside]].sum())
        kept += int(weight[alive].sum())
        held += int((lives.size[rows] * weight)[alive].sum())
    return ScopeGrowth(label, len(scopes), made, outlived, kept, held)


def outermost(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Spans that lie in no other one, in order: of a scope that was entered again inside itself."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]))
    outer = begin > before
    return begin[outer], end[outer]
