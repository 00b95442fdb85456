"""Results that are joined into one array and freed are no leak; what nobody joined still is."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, Finding, analyse

STEP = 10_000_000
SIZE = 20_000
COUNT = 400


def gathered(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.kind == "gathered"]


def prediction(joined: float, at: int = 20, during: bool = False, freed: bool = True) -> Program:
    """Each step keeps a result of line 10; at the end line ``at`` makes one of all their bytes."""
    program = Program()
    results = []
    for _ in range(COUNT):
        results.append(program.alloc(10, SIZE))
        program.temporary(11, 3 * SIZE)
        if during:
            program.temporary(at, SIZE)
        program.wait(STEP)
    whole = program.alloc(at, int(joined * COUNT * SIZE)) if joined else None
    for result in results if freed else ():
        program.free(result)
    program.wait(STEP)
    if whole is not None:
        program.free(whole)
    for _ in range(10):
        program.temporary(30, SIZE)
        program.wait(STEP)
    return program


def test_results_that_are_joined_and_freed_are_told_and_are_no_leak() -> None:
    analysis = analyse(prediction(1.0).recording())
    found = gathered(analysis)

    assert analysis.verdict.outcome == "stable"
    assert [(f.severity, f.count, f.bytes) for f in found] == [("info", COUNT, COUNT * SIZE)]
    assert found[0].evidence == (
        "400 arrays allocated at program.py:10 were gathered, joined at program.py:20, and then "
        "freed: 8.00 MB, twice for a moment."
    )


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (prediction(0), "nothing was made of them"),
        (prediction(0.5), "half of them are not all"),
        (prediction(2.0), "that is something else"),
        (prediction(1.0, during=True), "a line that works all the time joins nothing"),
        (prediction(1.0, at=10), "a line does not join what it makes"),
        (prediction(1.0, freed=False), "they were kept beside what was made of them"),
    ],
)
def test_what_is_not_joined_and_freed_is_a_leak(program: Program, why: str) -> None:
    analysis = analyse(program.recording())

    assert gathered(analysis) == [], why
    assert analysis.verdict.outcome == "leak", why
    kept = "freed only at the program's end" if "kept beside" not in why else "never freed"
    assert f"were {kept}" in analysis.verdict.sentence


def test_a_table_of_several_columns_is_one_result() -> None:
    program = Program()
    results = []
    for _ in range(COUNT):
        results.append(program.alloc(10, SIZE))
        program.temporary(11, 3 * SIZE)
        program.wait(STEP)
    columns = [program.alloc(20, COUNT * SIZE // 4) for _ in range(4)]
    for each in [*results, *columns]:
        program.free(each)
    program.wait(STEP)

    assert analyse(program.recording()).verdict.outcome == "stable"
