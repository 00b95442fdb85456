"""Programs that work in stages: the last one rises to the program's end, as a leak does."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse

OBJECTS = 600
"""What a stage keeps."""


def stage(program: Program, line: int, objects: int = OBJECTS, size: int = 8_000) -> list[int]:
    """Keeps objects of a line, each beside a temporary."""
    kept = []
    for _ in range(objects):
        program.temporary(line)
        kept.append(program.alloc(line, size))
        program.wait(200_000)
    return kept


def free(program: Program, kept: list[int]) -> None:
    """What a function does when it returns."""
    for number in kept:
        program.free(number)


def kinds(found: Analysis) -> set[str]:
    return {finding.kind for finding in found.findings}


def test_the_last_of_several_stages_that_gave_back_is_no_leak() -> None:
    program = Program()
    free(program, stage(program, 3))
    free(program, stage(program, 5))
    stage(program, 7)
    found = analyse(program.recording())

    assert found.verdict.outcome == "stable", found.verdict
    assert "growing-site" not in kinds(found)
    (last,) = (finding for finding in found.findings if finding.kind == "last-stage")
    assert last.severity == "info" and last.count == OBJECTS
    assert "program.py:5 and program.py:3 kept as much for as long, and gave it back" in (
        last.evidence
    )


def test_stages_that_hand_over_what_they_keep_one_by_one_are_no_leak() -> None:
    program = Program()
    kept = stage(program, 3)
    for line in (5, 7):
        handed = []
        for number in kept:
            handed += stage(program, line, objects=1)
            program.free(number)
        kept = handed

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("gives_back", [True, False])
def test_one_stage_before_leaves_it_open(gives_back: bool) -> None:
    program = Program()
    kept = stage(program, 3)
    if gives_back:
        free(program, kept)
    stage(program, 7)
    found = analyse(program.recording())

    assert found.verdict.outcome == "cannot-judge" and found.verdict.only_growth
    assert ("gave it back" in found.verdict.sentence) == gives_back
    assert ("stopped" in found.verdict.sentence) == (not gives_back)


def test_two_lines_at_work_at_once_are_one_stage() -> None:
    program = Program()
    kept = [number for _ in range(OBJECTS) for line in (3, 5) for number in stage(program, line, 1)]
    free(program, kept)
    stage(program, 7)

    assert analyse(program.recording()).verdict.outcome == "cannot-judge"


@pytest.mark.parametrize(
    ("before", "size"),
    [
        pytest.param(OBJECTS // 3, 8_000, id="shorter"),
        pytest.param(OBJECTS, 800, id="smaller"),
    ],
)
def test_growth_that_outlasts_the_stages_before_it_is_a_leak(before: int, size: int) -> None:
    program = Program()
    free(program, stage(program, 3, before, size))
    free(program, stage(program, 5, before, size))
    stage(program, 7)
    found = analyse(program.recording())

    assert found.verdict.outcome == "leak", found.verdict
    assert "last-stage" not in kinds(found)


def test_a_line_that_goes_on_was_no_stage() -> None:
    program = Program()
    free(program, stage(program, 3))
    free(program, stage(program, 5))
    for _ in range(OBJECTS):
        stage(program, 7, objects=1)
        for line in (3, 5):
            program.temporary(line)

    assert analyse(program.recording()).verdict.outcome == "leak"


def begun_lately(share: float, freed_before: bool = True) -> Analysis:
    """A line whose objects are freed at once, and kept in the last part of the run."""
    program = Program()
    steps = 3000
    for step in range(steps):
        number = program.alloc(3, 40_000)
        program.temporary(5)
        program.wait(1_000_000)
        if freed_before and step < steps * (1 - share):
            program.free(number)
    return analyse(program.recording())


@pytest.mark.parametrize("share", [0.15, 0.25])
def test_growth_that_has_begun_leaves_a_doubt(share: float) -> None:
    """The same line made what was freed before: it may be a leak, or the last stage's results."""
    found = begun_lately(share)

    assert found.verdict.outcome == "cannot-judge"
    assert " allocated at program.py:3 were kept since " in found.verdict.sentence
    assert "Before that they were freed: a leak that has just begun" in found.verdict.sentence
    (last,) = (finding for finding in found.findings if finding.kind == "last-stage")
    assert last.count == pytest.approx(3000 * share, rel=0.1)


def test_growth_that_has_lasted_is_a_leak() -> None:
    assert begun_lately(0.4).verdict.outcome == "leak"


def test_what_was_kept_at_the_very_end_leaves_no_doubt() -> None:
    assert begun_lately(0.05).verdict.outcome == "stable"


def test_little_that_has_begun_to_be_kept_leaves_no_doubt() -> None:
    program = Program()
    for step in range(3000):
        number = program.alloc(3, 800)
        program.temporary(5)
        program.wait(1_000_000)
        if step < 2400:
            program.free(number)

    assert analyse(program.recording()).verdict.outcome == "stable"
