"""A buffer that is replaced by a larger one when it is full: as long as it is filled, a doubt."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse

STEPS = 3_000
ITEM = 16_000
"""Bytes that each step puts into the buffer."""


def filled(
    factor: float = 2.0,
    until: float = 1.0,
    pace: float = 1.0,
    work: int = 1,
    freed_first: bool = False,
) -> Analysis:
    """A buffer of four items to which each step adds one.

    Args:
        factor: by which a full one becomes larger.
        until: the share of the steps that add something.
        pace: the power of the steps by which the buffer is filled.
        work: temporaries that each step makes.
        freed_first: whether the one before is freed before the next one is made, not after.
    """
    program, capacity = Program(), 4
    buffer = program.alloc(10, capacity * ITEM)
    for step in range(STEPS):
        items = (min(step, until * STEPS) / STEPS) ** pace * STEPS
        if items > capacity:
            before, capacity = buffer, round(factor * capacity)
            if freed_first:
                program.free(before)
            buffer = program.alloc(10, capacity * ITEM)
            if not freed_first:
                program.wait(10_000)
                program.free(before)
        for _ in range(work):
            program.temporary(20, 5_000)
        program.wait(1_000_000)
    return analyse(program.recording())


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
def test_a_buffer_that_is_filled_to_the_end_leaves_a_doubt(factor: float) -> None:
    found = filled(factor)

    assert found.verdict.outcome == "cannot-judge"
    assert "Each array allocated at program.py:10 replaces a smaller one that was full: from " in (
        found.verdict.sentence
    )
    assert found.verdict.sentence.endswith("this is a leak. Run it for longer.")
    (finding,) = [each for each in found.findings if each.kind == "growing-array"]
    assert (finding.severity, finding.count) == ("warning", 1)


def outcome_and_kinds(found: Analysis) -> tuple[str, bool]:
    """The outcome, and whether a growing array is reported."""
    return found.verdict.outcome, any(each.kind == "growing-array" for each in found.findings)


NOTHING = ("stable", False)


def test_one_that_is_overdue_is_filled_no_more() -> None:
    assert outcome_and_kinds(filled(until=0.4)) == NOTHING


@pytest.mark.parametrize("pace", [0.3, 4.0])
def test_one_that_is_filled_at_another_pace_each_time_is_not_told(pace: float) -> None:
    """Ever more slowly, as by keys that come to an end; or ever faster."""
    assert outcome_and_kinds(filled(pace=pace)) == NOTHING


def test_without_other_work_its_pace_is_not_known() -> None:
    assert outcome_and_kinds(filled(work=0)) == NOTHING


def test_arrays_that_are_freed_before_the_next_one_are_not_copied() -> None:
    assert outcome_and_kinds(filled(freed_first=True)) == NOTHING


@pytest.mark.parametrize("rebound", [False, True])
def test_a_loop_over_problem_sizes_fills_no_buffer(rebound: bool) -> None:
    """Each size takes twice as long, in as many steps; the old array may go after the new came."""
    program, before = Program(), None
    for power in range(10):
        if before is not None and not rebound:
            program.free(before)
        array = program.alloc(10, 64_000 << power)
        if before is not None and rebound:
            program.free(before)
        for _ in range(40):
            program.temporary(20, 1_000)
            program.wait(100_000 << power)
        before = array

    assert outcome_and_kinds(analyse(program.recording())) == NOTHING
