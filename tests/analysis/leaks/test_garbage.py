"""Lines whose survivors only wait for Python's garbage collector: no leak, and no pass in doubt."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.leaks.garbage import containers_between
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind
from tlmem.units import format_count

CYCLE = Step(StepKind.CYCLE, "__main__.Node", "Node.parent -> Node.children[] -> Node", 3)
DATA = Step(StepKind.INSTANCE, "__main__.Node", "data")
LOCAL = Step(StepKind.LOCAL, "main\n/home/user/program.py\n12", "node")
NOTES = {"gc.threshold": "700,10,10", "gc.frozen": "0"}
STEPS = 400


def cyclic(
    seen_at: int = 300, collecting: bool = True, size: int = 8_000, old_go: bool = False
) -> Program:
    """An array of line 10 is in a cycle after each step; snapshots see those that there are."""
    program, made = Program(), []
    for step in range(STEPS):
        made.append(program.alloc(10, size))
        program.temporary(90)
        program.wait(1_000_000)
        if old_go and step > 40 and step % 10 == 9:
            program.free(made.pop(-40))
        if step + 1 == seen_at:
            program.snapshot(([CYCLE, DATA], list(made), 1.0), collecting=collecting)
    return program


def judged(program: Program, notes: dict[str, str] = NOTES) -> Analysis:
    recording = program.recording()
    recording.info.update(notes)
    return analyse(recording)


def told(analysis: Analysis) -> list[tuple[str, str]]:
    return [(f.kind, f.severity) for f in analysis.findings if f.kind != "live-at-end"]


def test_what_waits_for_the_collector_is_no_leak() -> None:
    analysis = judged(cyclic())
    (found,) = [f for f in analysis.findings if f.kind == "reference-cycle"]

    assert analysis.verdict.outcome == "stable"
    assert "400 arrays of 3.20 MB in reference cycles wait for" in analysis.verdict.sentence
    assert told(analysis) == [("reference-cycle", "info")]
    assert (
        "400 arrays allocated at program.py:10 are garbage, not a leak: held only by"
        in found.evidence
    )
    assert f"when about {format_count(70_000)} more containers" in found.evidence


def test_much_of_it_is_worth_a_warning() -> None:
    analysis = judged(cyclic(size=80_000))

    assert analysis.verdict.outcome == "stable"
    assert told(analysis) == [("reference-cycle", "warning")]


@pytest.mark.parametrize(
    "notes",
    [
        {},
        NOTES | {"gc.threshold": "0,10,10"},
        NOTES | {"gc.threshold": "100000,50,100"},
        NOTES | {"gc.threshold": "6,6,6"},
        NOTES | {"gc.threshold": "many"},
        NOTES | {"gc.frozen": "1200"},
    ],
    ids=["not known", "never", "hardly ever", "would have come", "nonsense", "frozen"],
)
def test_cycles_that_the_collector_does_not_find_are_a_leak(notes: dict[str, str]) -> None:
    analysis = judged(cyclic(), notes)

    assert analysis.verdict.outcome == "leak"
    assert told(analysis) == [("growing-site", "error"), ("reference-cycle", "warning")]


def test_cycles_are_a_leak_when_the_collector_is_off() -> None:
    assert judged(cyclic(collecting=False)).verdict.outcome == "leak"


def test_what_a_function_may_have_held_until_it_returned_is_not_judged() -> None:
    program = cyclic(seen_at=-1, old_go=True)
    alive = [number for number in range(len(program.died)) if program.died[number] < 0]
    program.snapshot(([CYCLE, DATA], alive, 1.0), collecting=True, trigger=5)
    analysis = judged(program)

    assert analysis.verdict.outcome == "cannot-judge"
    assert "call tlmem.mark() or tlmem.snapshot() in its loop." in analysis.verdict.sentence
    assert told(analysis) == [("reference-cycle", "warning")]


def test_what_nobody_ever_let_go_of_is_a_leak_though_it_is_garbage_at_the_end() -> None:
    program = cyclic(seen_at=-1)
    program.snapshot(([CYCLE, DATA], list(range(0, 2 * STEPS, 2)), 1.0), collecting=True, trigger=5)

    assert judged(program).verdict.outcome == "leak"


def test_the_first_of_many_that_was_reached_says_nothing_of_the_others() -> None:
    """An early snapshot sees the one tree there is in a variable; later ones have become cycles."""
    program = Program()
    for step in range(STEPS):
        program.alloc(10)
        program.temporary(90)
        program.wait(1_000_000)
        if step == 19:
            program.snapshot(([LOCAL, DATA], list(range(0, 40, 2)), 1.0))
        if step == 300:
            program.snapshot(([CYCLE, DATA], list(range(0, 602, 2)), 1.0), collecting=True)

    assert judged(program).verdict.outcome == "stable"


@pytest.mark.parametrize(("pruned", "outcome"), [(200, "stable"), (0, "leak")])
@pytest.mark.parametrize("root", [LOCAL, Step(StepKind.MODULE, "__main__", "tree")])
def test_what_was_pruned_from_a_tree_is_garbage_although_it_was_reached_before(
    root: Step, pruned: int, outcome: str
) -> None:
    """When the program ends all of it is in cycles; what the last look in the run saw decides."""
    program = Program()
    for step in range(STEPS):
        program.alloc(10)
        program.temporary(90)
        program.wait(1_000_000)
        if step == 150:
            program.snapshot(([root, DATA], list(range(0, 302, 2)), 1.0), collecting=True)
        if step == 300:
            cut, kept = list(range(0, 2 * pruned, 2)), list(range(2 * pruned, 602, 2))
            chains = [([CYCLE, DATA], cut, 1.0), ([root, DATA], kept, 1.0)]
            program.snapshot(*(chain for chain in chains if chain[1]), collecting=True)
    program.snapshot(([CYCLE, DATA], list(range(0, 2 * STEPS, 2)), 1.0), collecting=True, trigger=5)

    assert judged(program).verdict.outcome == outcome


@pytest.mark.parametrize(
    ("root", "outcome"),
    [(Step(StepKind.MODULE, "__main__", "tree"), "cannot-judge"), (LOCAL, "leak")],
)
def test_when_a_module_let_go_of_garbage_is_unknown_if_no_look_came_as_far_as_cycles(
    root: Step, outcome: str
) -> None:
    program = Program()
    for step in range(STEPS):
        program.alloc(10)
        program.temporary(90)
        program.wait(1_000_000)
        if step == 300:
            kept = list(range(350, 602, 2))
            program.snapshot(([root, DATA], kept, 1.0), collecting=True, whole=False)
    program.snapshot(([CYCLE, DATA], list(range(0, 2 * STEPS, 2)), 1.0), collecting=True, trigger=5)
    analysis = judged(program)

    assert analysis.verdict.outcome == outcome
    if outcome == "cannot-judge":
        assert "when it let go of these is unknown" in analysis.verdict.sentence


def test_growth_beside_garbage_is_told_when_it_is_larger() -> None:
    def with_python(bytes_per_step: float) -> Program:
        program = Program()
        for step in range(STEPS):
            program.alloc(10, 100)
            program.temporary(90)
            program.python += bytes_per_step
            program.wait(1_000_000)
            if step == 300:
                program.snapshot(([CYCLE, DATA], list(range(0, 602, 2)), 1.0), collecting=True)
        return program

    assert judged(with_python(5_000)).verdict.outcome == "stable"
    assert judged(with_python(50_000)).verdict.outcome == "python"


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [("700,10,10", 70_000), ("2000,10,0", 20_000), ("700,0,0", 700), ("0,10,10", None)],
)
def test_the_collector_comes_after_the_product_of_its_thresholds(
    threshold: str, expected: int | None
) -> None:
    assert containers_between(NOTES | {"gc.threshold": threshold}) == expected
