"""Leaks by a tape: ``grads-outlive-step``, ``saved-outlives-backward``, ``tape-not-released``.

Covers: growing lines whose survivors are saved for backward rules, or are gradients.
Does not cover: other holders; see ``ownership_leaks``. See also: docs/findings/, a page for each.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tlmem.analysis.holders.survivors import NEARLY_ALL, Kept, ops_of
from tlmem.analysis.model import Finding
from tlmem.events import FIRST_TAPE_OP, HolderKind
from tlmem.units import format_count

TAPE = int(HolderKind.TAPE)


def grads_outlive_step(kept: Kept) -> Finding | None:
    """Gradients that somebody keeps after the tape gave them up, or that nobody clears."""
    history = pd.concat([kept.now, kept.before])
    tape = history[history["kind"] == TAPE]
    gradients = tape[ops_of(tape) < FIRST_TAPE_OP]
    if not kept.nearly_all(gradients):
        return None
    still = gradients["object"].isin(kept.now.loc[kept.now["kind"] == TAPE, "object"])
    cleared = gradients.loc[~still | (gradients["end_ns"] >= 0), "object"].nunique()
    told = (
        f"cleared, yet {kept.holder_names} has them since {kept.taken_at}"
        if cleared >= NEARLY_ALL * gradients["object"].nunique()
        else "never cleared: their leaves are new ones in each step, and stay"
    )
    return kept.finding(
        "grads-outlive-step", f"{kept.noun} are gradients of steps that are over; they were {told}."
    )


def saved_outlives_backward(kept: Kept) -> Finding | None:
    """Values saved for rules that a backward pass has run and, as it was told, retained."""
    times = save_times(kept)
    if times is None:
        return None
    passed = times[which_retained(kept, times)]
    if len(passed) < NEARLY_ALL * kept.known:
        return None
    return kept.finding(
        "saved-outlives-backward",
        f"{kept.noun} are held by {kept.holder_names} alone, saved at {kept.taken_at}, though "
        f"the backward pass after {format_count(len(passed))} of them is over: it was told to "
        "retain its graph, and the graph's result is kept.",
    )


def tape_not_released(kept: Kept) -> Finding | None:
    """Values saved for rules that no backward pass ever ran."""
    times = save_times(kept)
    if times is None:
        return None
    return kept.finding(
        "tape-not-released",
        f"{kept.noun} are held by {kept.holder_names} alone, saved at {kept.taken_at} for a "
        "backward pass that has not come: the results of ever more steps are kept with their "
        "history.",
    )


def save_times(kept: Kept) -> np.ndarray | None:
    """When each survivor was saved, if a tape alone holds nearly all of them for rules."""
    if not kept.held_only_by(HolderKind.TAPE):
        return None
    rows = kept.now[kept.now["kind"] == TAPE]
    rows = rows[ops_of(rows) >= FIRST_TAPE_OP]
    if not kept.nearly_all(rows):
        return None
    return rows.groupby("object")["begin_ns"].min().to_numpy(np.int64)


def which_retained(kept: Kept, times: np.ndarray) -> np.ndarray:
    """Which of these times of saving had a whole pass next that let go of nothing it had used.

    A pass that let go of anything that was saved since the pass before ran another graph, or
    did not retain; then what stays was not a part of it.
    """
    passes = kept.recording.passes
    passes = passes[(passes["status"] == 0) & (passes["end_ns"] <= kept.judged_ns)]
    if not len(passes):
        return np.zeros(len(times), bool)
    begin, end = (passes[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns"))
    ledger = kept.recording.holders
    saves = ledger[(ledger["kind"] == TAPE) & (ops_of(ledger) >= FIRST_TAPE_OP)]
    ended = np.sort(saves["end_ns"].to_numpy(np.int64))
    let_go = np.searchsorted(ended, end, side="right") - np.searchsorted(ended, begin, side="left")
    after = np.searchsorted(begin, times)
    there = after < len(begin)
    return there & (let_go[np.where(there, after, 0)] == 0)


TAPES = (grads_outlive_step, saved_outlives_backward, tape_not_released)
