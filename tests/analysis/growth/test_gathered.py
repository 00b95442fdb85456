"""Results that are joined into one array at the end are not a leak; all other growth still is."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, Finding, analyse

STEP = 10_000_000
SIZE = 20_000
COUNT = 400


def gathered(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.kind == "gathered"]


def prediction(
    joined: float,
    at: int = 20,
    during: bool = False,
    freed: bool = True,
    after: int = 10,
    again: int = 0,
) -> Program:
    """Each step keeps a result of line 10; at the end line ``at`` makes one of all their bytes."""
    program = Program()
    results = []
    for step in range(COUNT):
        results.append(program.alloc(10, SIZE))
        program.temporary(11, 3 * SIZE)
        if during:
            program.temporary(at, SIZE)
        if again and step % (COUNT // again) == COUNT // again - 1:
            program.temporary(25, len(results) * SIZE)
        program.wait(STEP)
    if again:
        program.temporary(25, len(results) * SIZE)
    whole = program.alloc(at, int(joined * COUNT * SIZE)) if joined else None
    for result in results if freed else ():
        program.free(result)
    program.wait(STEP)
    if whole is not None:
        program.free(whole)
    for _ in range(after):
        program.temporary(30, SIZE)
        program.wait(STEP)
    return program


@pytest.mark.parametrize("freed", [True, False])
def test_results_that_are_joined_at_the_end_are_told_and_are_no_leak(freed: bool) -> None:
    """Freed by the program, or never, as what a module names."""
    analysis = analyse(prediction(1.0, freed=freed).recording())
    found = gathered(analysis)

    assert analysis.verdict.outcome == "stable"
    assert [(f.severity, f.count, f.bytes) for f in found] == [("info", COUNT, COUNT * SIZE)]
    assert found[0].evidence == (
        "400 arrays allocated at program.py:10 were gathered and joined at program.py:20: "
        "8.00 MB, twice for a moment."
    )


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (prediction(0), "nothing was made of them"),
        (prediction(0.9), "most of them are not all"),
        (prediction(2.0), "that is something else"),
        (prediction(1.0, during=True), "a line that works all the time joins nothing"),
        (prediction(1.0, at=10), "a line does not join what it makes"),
        (prediction(1.0, freed=False, after=80), "they were kept long after they were joined"),
        (prediction(1.0, again=4), "they were joined again and again, and kept"),
    ],
)
def test_what_is_not_joined_and_freed_is_a_leak(program: Program, why: str) -> None:
    analysis = analyse(program.recording())

    assert gathered(analysis) == [], why
    assert analysis.verdict.outcome == "leak", why
    kept = "never freed" if "kept long" in why else "freed only at the program's end"
    assert f"were {kept}" in analysis.verdict.sentence


def test_a_table_of_several_columns_is_one_result_and_its_index_goes_with_it() -> None:
    program = Program()
    results = []
    for _ in range(COUNT):
        results += [program.alloc(10, SIZE), program.alloc(9, 24)]
        program.temporary(11, 3 * SIZE)
        program.wait(STEP)
    columns = [program.alloc(20, COUNT * SIZE // 4) for _ in range(4)]
    for each in [*results, *columns]:
        program.free(each)
    program.wait(STEP)

    analysis = analyse(program.recording())
    assert analysis.verdict.outcome == "stable"
    assert [f.site and f.site.line for f in gathered(analysis)] == [10, 9]
