"""Growth per mark and per scope: by steps of the program instead of seconds."""

import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.growth.per_mark import Marks, step_of_line
from tlmem.analysis.growth.per_scope import growth_per_scope, outermost
from tlmem.analysis.lifetimes import NEVER
from tlmem.report.json import steps_dict
from tlmem.report.text import steps_block


def epochs(count: int, kept: int = 2, size: int = 4_000, native: float = 0) -> Analysis:
    """A program whose epochs keep a few objects, at a pace that changes all the time."""
    program, chance = Program(), random.Random(count)
    for epoch in range(count):
        for batch in range(3):
            program.temporary(20, chance.randrange(1000, 900_000))
            program.mark("batch", batch)
        for _ in range(kept):
            program.alloc(10, size)
        program.native += native
        program.mark("epoch", epoch)
        program.wait(chance.randrange(500_000, 9_000_000))
    return analyse(program.recording())


def per_epoch(analysis: Analysis):
    return next(growth for growth in analysis.per_mark if growth.label == "epoch")


def test_what_each_step_keeps_is_exact() -> None:
    growth = per_epoch(epochs(300))

    assert growth.marks == 300
    assert growth.tracked_objects is not None and growth.tracked_bytes is not None
    assert growth.tracked_objects.value == 2
    assert growth.tracked_bytes.value == pytest.approx(8_000)
    assert (growth.tracked_bytes.low, growth.tracked_bytes.high) == pytest.approx((8_000, 8_000))


def test_native_memory_per_step_is_measured_between_samples() -> None:
    growth = per_epoch(epochs(400, kept=0, native=5_000))

    assert growth.tracked_bytes is not None and growth.native_bytes is not None
    assert growth.tracked_bytes.value == 0
    assert growth.native_bytes.low > 0
    assert growth.native_bytes.value == pytest.approx(5_000, rel=0.05)


def test_nothing_grows_per_step_of_a_program_that_keeps_nothing() -> None:
    analysis = epochs(200, kept=0)
    growth = per_epoch(analysis)

    assert growth.tracked_objects is not None and growth.resident_bytes is not None
    assert growth.tracked_objects.value == 0
    assert growth.resident_bytes.low <= 0 <= growth.resident_bytes.high
    assert "none  resident memory" in steps_block(analysis)


def test_warm_up_is_not_counted() -> None:
    program = Program()
    for epoch in range(200):
        if epoch < 60:
            program.alloc(10, 100_000)
        program.alloc(30, 500)
        program.mark("epoch", epoch)
        program.wait(2_000_000)
    growth = per_epoch(analyse(program.recording()))

    assert growth.tracked_bytes is not None
    assert growth.tracked_bytes.value == pytest.approx(500)
    assert growth.first_index == pytest.approx(60, abs=8)


def test_a_finding_says_what_a_step_of_its_label_keeps() -> None:
    finding = epochs(300).findings[0]

    assert "2 arrays and 8.00 kB per epoch" in finding.evidence


def test_too_few_marks_say_nothing() -> None:
    assert epochs(7).per_mark[0].label == "batch"
    assert len(epochs(7).per_mark) == 1


def test_a_line_follows_the_label_that_is_most_regular() -> None:
    times = np.arange(0, 100_000, 1000)
    born = np.sort(np.concatenate([times + 300, times + 600]))
    chance = np.random.default_rng(2)
    marks = Marks(
        {"epoch": times, "event": np.sort(chance.integers(0, 100_000, 60))},
        {"epoch": times, "event": np.arange(60)},
    )
    step = step_of_line(marks, born, np.full(len(born), 50))

    assert step is not None
    assert (step.label, step.objects, step.bytes) == ("epoch", 2, 100)


def test_a_line_that_keeps_something_now_and_then_follows_no_step() -> None:
    times = np.arange(0, 100_000, 1000)
    marks = Marks({"epoch": times}, {"epoch": np.arange(100)})

    assert step_of_line(marks, np.array([5_500, 50_500, 90_500]), np.full(3, 10)) is None


def lives_of(born: list[int], died: list[int], judged_ns: int) -> SimpleNamespace:
    return SimpleNamespace(
        born=np.array(born),
        died=np.array(died),
        size=np.full(len(born), 100),
        weight=np.ones(len(born), np.int64),
        judged_ns=judged_ns,
    )


def scopes_of(label: str, spans: list[tuple[int, int]], thread: int = 1) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "label": label,
            "thread": thread,
            "enter_ns": [begin for begin, _ in spans],
            "exit_ns": [end for _, end in spans],
        }
    )


def test_what_outlives_its_scope_is_counted_by_label() -> None:
    spans = [(10 * n, 10 * n + 9) for n in range(10)]
    born = [begin + at for begin, _ in spans for at in (1, 2, 3)]
    died = [number for _, end in spans for number in (end - 1, end + 4, NEVER)]
    lives = lives_of(born, died, 200)
    (growth,) = growth_per_scope(scopes_of("epoch", spans), np.ones(30, np.int64), lives)  # type: ignore[arg-type]

    assert (growth.scopes, growth.made, growth.outlived, growth.kept) == (10, 30, 20, 10)
    assert growth.kept_bytes == 1000
    assert growth.kept_per_scope == 1


def test_objects_of_other_threads_are_not_of_a_scope() -> None:
    spans = [(10 * n, 10 * n + 9) for n in range(10)]
    lives = lives_of([begin + 1 for begin, _ in spans], [NEVER] * 10, 200)
    (growth,) = growth_per_scope(scopes_of("epoch", spans), np.full(10, 2), lives)  # type: ignore[arg-type]

    assert growth.made == 0


def test_a_scope_inside_one_of_its_own_label_counts_once() -> None:
    begin, end = outermost(np.array([0, 2, 20]), np.array([10, 5, 30]))

    assert (begin.tolist(), end.tolist()) == ([0, 20], [10, 30])


def test_scopes_that_are_still_entered_and_few_ones_say_nothing() -> None:
    lives = lives_of([1], [NEVER], 200)
    few = scopes_of("few", [(0, 5)] * 3)
    entered = scopes_of("open", [(n, -1) for n in range(20)])

    assert growth_per_scope(few, np.ones(1, np.int64), lives) == ()  # type: ignore[arg-type]
    assert growth_per_scope(entered, np.ones(1, np.int64), lives) == ()  # type: ignore[arg-type]


def test_the_json_lists_have_numbers_only() -> None:
    lists = steps_dict(epochs(50))

    assert {entry["label"] for entry in lists["per_mark"]} == {"epoch", "batch"}
    assert lists["per_mark"][0]["tracked_bytes"].keys() == {"value", "low", "high"}
    assert lists["per_scope"] == []
