"""Leaks by a tape: ``grads-outlive-step``, ``saved-outlives-backward``, ``tape-not-released``.

Covers: growing lines whose survivors are saved for backward rules, or are gradients.
Does not cover: other holders; see ``ownership``. See also: docs/findings/, a page for each.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tlmem.analysis.holders.survivors import Survivors, ops_of
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.events import FIRST_TAPE_OP, HolderKind
from tlmem.units import format_count

TAPE = int(HolderKind.TAPE)


def grads_outlive_step(line: Survivors) -> Finding | None:
    """Gradients that are held after the tape released them, or that are never cleared."""
    history = pd.concat([line.now, line.before])
    tape = history[history["kind"] == TAPE]
    gradients = tape[ops_of(tape) < FIRST_TAPE_OP]
    if not line.nearly_all(gradients):
        return None
    still = gradients["object"].isin(line.now.loc[line.now["kind"] == TAPE, "object"])
    cleared = gradients.loc[~still | (gradients["end_ns"] >= 0), "object"].nunique()
    why = (
        f"cleared, but {line.holder_names} still holds them, acquired at {line.taken_at}"
        if cleared >= RULES.nearly_all * gradients["object"].nunique()
        else "never cleared: each step creates new leaves, which are kept"
    )
    return line.finding(
        "grads-outlive-step", f"{line.noun} are gradients of finished steps; they were {why}."
    )


def saved_outlives_backward(line: Survivors) -> Finding | None:
    """Values saved for rules that a backward pass has run and, as it was asked to, retained."""
    times = save_times(line)
    if times is None:
        return None
    passed = times[which_retained(line, times)]
    if len(passed) < RULES.nearly_all * line.known:
        return None
    return line.finding(
        "saved-outlives-backward",
        f"{line.noun} are held only by {line.holder_names}, saved at {line.taken_at}, although "
        f"the backward pass after {format_count(len(passed))} of them is over: it ran with "
        "retain_graph, and the graph's result is kept.",
    )


def tape_not_released(line: Survivors) -> Finding | None:
    """Values saved for rules that no backward pass ever ran."""
    times = save_times(line)
    if times is None:
        return None
    return line.finding(
        "tape-not-released",
        f"{line.noun} are held only by {line.holder_names}, saved at {line.taken_at} for a "
        "backward pass that was never run: the results of the steps are kept with their history.",
    )


def save_times(line: Survivors) -> np.ndarray | None:
    """When each survivor was saved, if a tape alone holds nearly all of them for rules."""
    if not line.held_only_by(HolderKind.TAPE):
        return None
    rows = line.now[line.now["kind"] == TAPE]
    rows = rows[ops_of(rows) >= FIRST_TAPE_OP]
    if not line.nearly_all(rows):
        return None
    return rows.groupby("object")["begin_ns"].min().to_numpy(np.int64)


def which_retained(line: Survivors, times: np.ndarray) -> np.ndarray:
    """Which of these times of saving had a whole pass next that let go of nothing it had used.

    A pass that let go of anything that was saved since the pass before ran another graph, or
    did not retain; then what stays was not a part of it.
    """
    passes = line.recording.passes
    passes = passes[(passes["status"] == 0) & (passes["end_ns"] <= line.judged_ns)]
    if not len(passes):
        return np.zeros(len(times), bool)
    begin, end = (passes[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns"))
    ledger = line.recording.holders
    saves = ledger[(ledger["kind"] == TAPE) & (ops_of(ledger) >= FIRST_TAPE_OP)]
    ended = np.sort(saves["end_ns"].to_numpy(np.int64))
    let_go = np.searchsorted(ended, end, side="right") - np.searchsorted(ended, begin, side="left")
    after = np.searchsorted(begin, times)
    there = after < len(begin)
    return there & (let_go[np.where(there, after, 0)] == 0)


TAPES = (grads_outlive_step, saved_outlives_backward, tape_not_released)
