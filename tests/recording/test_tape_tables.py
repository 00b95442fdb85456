"""Ops, passes and what tapes hold, from files written by hand; holders of tapes in words."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.owners import (
    ACQUIRE,
    ALLOC,
    BACKWARD_BEGIN,
    BACKWARD_END,
    CPU,
    FREE,
    RELEASE,
    TAPE_RECORD,
    TAPE_SAVE,
    TAPE_UNSAVE,
    Runtime,
    of_tape,
)

from tlmem.recording.reader import Recording, read

DETACH, RESET, CLEAR_GRADS = 29, 30, 31
UNDER_WAY, GRADIENT, AGAIN, MULTIPLY, EXP = 1, 2, 3, 16, 17
A, B, C = (1 << 28 | number for number in (1, 2, 3))
ROOT = 1 << 56 | 1 << 28 | 9
NAMES = [writer.note("op.16", "multiply"), writer.note("op.17", "exp"), writer.site(2, 0, 1, 7)]


def recorded(threads: dict[int, list[tuple]], form: str = "sealed", **limits: float) -> Recording:
    """(step, kind, object, arg, count, device) rows of each thread, read back from a file."""
    events = {
        thread: writer.events(
            (1_000_000 + 4 * step, obj, arg, 2, count, kind, device)
            for step, kind, obj, arg, count, device in rows
        )
        for thread, rows in threads.items()
    }
    file = writer.RecordingWriter(form=form, per_slot=7, codec=-1, meta=NAMES, threads=events)
    with tempfile.TemporaryDirectory() as folder:
        found = read(file.write(Path(folder) / "x.tlm"), **limits)
        assert len(found.holders) >= 0
    return found


def in_turn(*rows: tuple) -> list[tuple]:
    return [(step, *row) for step, row in enumerate(rows)]


def columns(table: pd.DataFrame, *names: str) -> list[tuple]:
    return list(table[list(names)].itertuples(index=False, name=None))


def saved(subject: int, op: int, sequence: int, count: int) -> list[tuple]:
    who = of_tape(op, sequence)
    return [(TAPE_SAVE, subject, who, count - 1, CPU), (ACQUIRE, subject, who, count, CPU)]


def unsaved(subject: int, op: int, sequence: int, count: int) -> list[tuple]:
    who = of_tape(op, sequence)
    return [(TAPE_UNSAVE, subject, who, count + 1, CPU), (RELEASE, subject, who, count, CPU)]


STEP = in_turn(
    (ALLOC, A, 64, 1, CPU),
    (ALLOC, B, 128, 1, CPU),
    (TAPE_RECORD, B, MULTIPLY << 40 | 8, 2, CPU),
    *saved(A, MULTIPLY, 8, 2),
    *saved(A, MULTIPLY, 8, 3),
    (TAPE_RECORD, C, EXP << 40 | 9, 1, CPU),
    *saved(B, EXP, 9, 2),
    *saved(A, EXP, 9, 4),
    (BACKWARD_BEGIN, ROOT, 9, 0, 0),
    (ALLOC, C, 32, 1, CPU),
    (ACQUIRE, C, of_tape(UNDER_WAY, 8), 2, CPU),
    *unsaved(A, EXP, 9, 3),
    *unsaved(B, EXP, 9, 1),
    *unsaved(A, MULTIPLY, 8, 2),
    (BACKWARD_END, ROOT, 2, 0, 0),
    (TAPE_RECORD, C, EXP << 40 | 10, 0, CPU),
    (DETACH, A, ROOT, 0, 0),
    (CLEAR_GRADS, 1, 1, 0, 0),
    (BACKWARD_BEGIN, ROOT, 9, 0, 0),
    (RESET, 1, 2, 0, 0),
)
"""One multiply of a value by itself, its exp, a pass that leaves one count, another under way."""


def test_ops_count_what_was_recorded_saved_and_is_still_held() -> None:
    ops = recorded({1: STEP}).ops

    assert ops.index.tolist() == [UNDER_WAY, MULTIPLY, EXP]
    told = ["name", "records", "saves", "saved_bytes", "held_count", "held_bytes"]
    assert columns(ops, *told) == [
        ("gradient under way", 0, 1, 32, 1, 32),
        ("multiply", 1, 2, 128, 1, 64),
        ("exp", 2, 2, 192, 0, 0),
    ]


def test_passes_know_what_was_saved_before_and_is_left_after() -> None:
    passes = recorded({1: STEP}).passes

    told = ["root", "sequence", "thread", "rules", "status", "recorded"]
    assert columns(passes, *told) == [(ROOT, 9, 1, 2, 0, 2), (ROOT, 9, 1, 0, -1, 1)]
    assert columns(passes, "saved_bytes", "left_bytes") == [(192, 64), (64, -1)]
    assert (passes["end_ns"] > passes["begin_ns"]).tolist() == [True, False]
    assert passes["site"].tolist() == [2, 2]


def test_a_pass_inside_a_rule_and_one_in_another_thread_have_their_own_ends() -> None:
    passes = recorded(
        {
            1: [
                (0, BACKWARD_BEGIN, 7, 1, 0, 0),
                (2, BACKWARD_BEGIN, 8, 2, 0, 0),
                (4, BACKWARD_END, 8, 5, 0, 0),
                (6, BACKWARD_END, 7, 6, 21, 0),
            ],
            2: [(3, BACKWARD_END, 3, 4, 0, 0), (5, BACKWARD_BEGIN, 9, 3, 0, 0)],
        }
    ).passes

    assert columns(passes, "root", "thread", "rules", "status") == [
        (7, 1, 6, 21),
        (8, 1, 5, 0),
        (9, 2, 0, -1),
    ]


def test_tape_memory_counts_each_object_once_and_gradients_apart() -> None:
    recording = recorded({1: STEP})
    # Two nanoseconds a step.
    memory = recording.tape_memory(2 * np.array([0, 2, 4, 6, 9, 11, 14, 16, 20, 99]))

    assert memory["saved_count"].tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 1, 1]
    assert memory["saved_bytes"].tolist() == [0, 0, 64, 64, 192, 192, 192, 192, 64, 64]
    assert memory["grad_count"].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert memory["grad_bytes"].tolist() == [0, 0, 0, 0, 0, 0, 32, 32, 32, 32]
    assert recording.problems == []


def test_what_a_tape_held_before_the_first_event_that_was_read_is_not_counted() -> None:
    recording = recorded({1: STEP}, start=2 * 10 / 1e9)
    memory = recording.tape_memory(np.array([30, 99]))

    assert memory["saved_bytes"].tolist() == [0, 0]
    assert recording.problems == []


def test_holders_of_a_tape_are_told_by_op_and_value() -> None:
    who = [
        *(of_tape(MULTIPLY, 8), of_tape(EXP, 1 << 39), of_tape(18, 4)),
        *(of_tape(UNDER_WAY, 8), of_tape(GRADIENT, 3), of_tape(AGAIN, 2), of_tape(0, 6)),
    ]
    recording = recorded(
        {
            1: in_turn(
                (ALLOC, A, 64, 1, CPU),
                *((ACQUIRE, A, holder, 2 + i, CPU) for i, holder in enumerate(who)),
            )
        }
    )

    assert recording.holders["holder"].tolist()[1:] == [
        *("tape 'multiply' #8", f"tape 'exp' #{1 << 39}", "tape 'op 18' #4"),
        *("gradient under way #8", "gradient #3", "value computed again #2", "tape node #6"),
    ]
    told = recording.held_at(np.array([0]), 10**9)["holder"].tolist()
    assert told[1:4] == ["tape 'multiply'", "tape 'exp'", "tape 'op 18'"]
    assert told[4:] == ["gradient under way", "gradient", "value computed again", "tape node"]


def saved_by_hand(runtime: Runtime, step: int) -> int:
    """Bytes of the objects that tapes held after a step, each once, from the pretended runtime."""
    alive: dict[int, int] = {}
    size = {}
    for rows in runtime.rows.values():
        size |= {row[1]: row[2] for row in rows if row[5] == ALLOC}
    for handle, who, begin, end in runtime.whole_ledger():
        if who >> 56 == 9 and begin <= step and (end < 0 or end > step):
            alive[handle] = size[handle]
    return sum(alive.values())


@given(
    st.lists(
        st.tuples(
            st.integers(1, 3), st.sampled_from([0, 4, 5, 10, 11, 15, 16, 17]), st.integers(0, 99)
        ),
        min_size=1,
        max_size=80,
    ),
    st.sampled_from(["compact", "raw", "sealed"]),
    st.integers(0, 300),
)
@settings(max_examples=80, deadline=None)
def test_what_tapes_hold_is_what_a_pretended_runtime_says(ops: list, form: str, step: int) -> None:
    runtime = Runtime().run(ops)
    if not runtime.steps:
        return
    file = writer.RecordingWriter(form=form, per_slot=7, codec=-1, threads=runtime.events())
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"))
        memory = recording.tape_memory(np.array([2 * step]))
        passes = recording.passes

    assert memory["saved_bytes"].tolist() == [saved_by_hand(runtime, step)]
    assert recording.ops["records"].sum() == runtime.recorded
    begins = passes["begin_ns"].to_numpy() // 2
    assert passes["saved_bytes"].tolist() == [saved_by_hand(runtime, at) for at in begins.tolist()]
    assert (passes["left_bytes"] <= passes["saved_bytes"]).all()
    assert recording.problems == []


@pytest.mark.parametrize("detail", [1, 50, 400])
def test_events_of_tapes_fold_without_a_trace_in_the_sums(detail: int) -> None:
    """A small tail in detail gives the same objects and totals as all events do."""
    rows, made = [], 0
    for step in range(400):
        made += 1
        thing = 1 << 28 | made
        rows += [(ALLOC, thing, 64, 1, CPU), (TAPE_RECORD, thing, EXP << 40 | step, 1, CPU)]
        rows += saved(thing, EXP, step, 2)
        rows += [(BACKWARD_BEGIN, ROOT, step, 0, 0), *unsaved(thing, EXP, step, 1)]
        rows += [(BACKWARD_END, ROOT, 1, 0, 0), (RELEASE, thing, 1 << 56, 0, CPU)]
        rows += [(FREE, thing, 0, 0, CPU)]
    whole = recorded({1: in_turn(*rows)})
    folded = recorded({1: in_turn(*rows)}, detail_events=detail)

    assert folded.folded_events > 0
    assert folded.problems == whole.problems == []
    assert vars(folded.totals) == vars(whole.totals)
    assert len(folded.passes) < len(whole.passes) == 400
    assert np.isnan(folded.tape_memory(np.array([0]))["saved_bytes"]).all()
    assert folded.tape_memory(np.array([10**9]))["saved_bytes"].tolist() == [0]
