"""Code without a file that stays: many cells are one place, which grows or does not like a line."""

from collections.abc import Callable

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.cells import is_stable
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import RULES
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

CELLS, RUNNER = 300, 12
OUT = Step(StepKind.MODULE, "__main__", "Out")


def ipython(number: int) -> str:
    return f"<ipython-input-{number}-abc>"


def session(
    keep: Callable[[int], bool],
    run_at: int | None = RUNNER,
    file: Callable[[int], str] = ipython,
    cells: int = CELLS,
) -> Program:
    """Cells that each make one array; it is kept, or replaced by that of the next cell."""
    program = Program()
    last = None
    for number in range(cells):
        line = 1000 + number
        program.cell(line, file(number), run_at)
        made = program.alloc(line, 40_000)
        program.temporary(90)
        program.wait(1_000_000)
        if last is not None:
            program.free(last)
        last = None if keep(number) else made
    return program


def kept_by(program: Program, steps: Callable[[int], list[Step]]) -> Analysis:
    """The verdict when a snapshot at the end sees each cell's array by a way of its own."""
    numbers = [n for n in range(len(program.born)) if program.died[n] < 0]
    program.snapshot(*((steps(at), [number], 1.0) for at, number in enumerate(numbers)), trigger=5)
    return analyse(program.recording())


def test_cells_that_keep_what_they_make_are_one_place_that_grows() -> None:
    program = session(lambda number: True)
    found = analyse(program.recording())

    assert found.verdict.outcome == "leak"
    assert "Leak at 300 cells run at program.py:12: 300 of 300 arrays" in found.verdict.sentence
    (line,) = [finding for finding in found.findings if finding.kind == "growing-site"]
    assert (line.count, str(line.site)) == (300, "/home/user/program.py:12")


def test_cells_that_overwrite_are_healthy() -> None:
    assert analyse(session(lambda number: False).recording()).verdict.outcome == "stable"


@pytest.mark.parametrize(
    "file",
    [
        lambda n: f"/tmp/ipykernel_77/{n * 7919}.py",
        lambda n: f"<doctest module.function[{n}]>",
        lambda n: f"<python-input-{n}>",
    ],
    ids=["ipykernel", "doctest", "console"],
)
def test_cells_that_a_library_runs_are_code_cells(file: Callable[[int], str]) -> None:
    found = analyse(session(lambda number: True, run_at=None, file=file).recording())

    assert "Leak at 300 code cells: 300 of 300 arrays" in found.verdict.sentence


def test_the_verdict_names_who_holds_what_cells_made() -> None:
    program = session(lambda number: True)
    program.snapshot(
        ([OUT, Step(StepKind.DICT, "dict", "[]", 300)], list(range(0, 600, 2)), 1.0), trigger=5
    )
    found = analyse(program.recording())

    assert found.verdict.sentence.endswith("Held by dict 'Out' (module __main__, 300 items).")


def test_results_with_names_of_their_own_are_no_leak() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    program = session(lambda number: True)
    found = kept_by(
        program,
        lambda at: [Step(StepKind.MODULE, "__main__", names[at % 26] + names[at // 26])],
    )

    assert found.verdict.outcome == "stable"


def test_numbered_variables_are_a_container() -> None:
    program = session(lambda number: True)
    found = kept_by(program, lambda at: [Step(StepKind.MODULE, "__main__", f"_{at}")])

    assert found.verdict.outcome == "leak"
    assert found.verdict.sentence.endswith(
        "Held by 300 numbered variables such as '_0', module __main__."
    )


def test_one_cell_that_runs_again_and_again_keeps_its_line() -> None:
    """As a cell with a loop, and a function of one cell that others call, do."""
    program = Program()
    program.cell(1000, ipython(1), RUNNER)
    for number in range(CELLS):
        program.cell(1001 + number, ipython(2 + number), RUNNER)
        program.temporary(1001 + number)
        program.alloc(1000, 40_000)
        program.wait(1_000_000)
    found = analyse(program.recording())

    assert "Leak at <ipython-input-1-abc>:1: " in found.verdict.sentence


def test_few_cells_keep_their_lines() -> None:
    program = session(lambda number: True, cells=int(RULES.few_survivors) - 1)
    places = Places.of(program.recording())

    assert not any(frame.cells for frame in places.frames)


def test_an_object_keeps_the_line_of_its_cell() -> None:
    program = session(lambda number: True)
    places = Places.of(program.recording())
    site = program.site[2 * 7]

    assert place(places.blamed_frame(site)) == "<ipython-input-7-abc>:1"
    assert place(places.frames[places.group_of_site[site]]) == "300 cells run at program.py:12"


@pytest.mark.parametrize(
    ("file", "stable"),
    [
        ("/home/user/model.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("", True),
        ("<string>", False),
        ("C:\\Temp\\ipykernel_9\\123.py", False),
        ("/home/user/ipykernel_9.py", True),
    ],
)
def test_which_files_stay(file: str, stable: bool) -> None:
    assert is_stable(file) == stable
