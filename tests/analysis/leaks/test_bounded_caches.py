"""Lines that may only fill a container with a bound: no leak is said, and no pass given."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

MODULE = Step(StepKind.MODULE, "__main__", "load")
STEPS = 400


def cached(items: int, most: int) -> Step:
    return Step(StepKind.LRU_CACHE, "__main__.load", "[]", items, most)


def listed(items: int) -> Step:
    return Step(StepKind.LIST, "list", "[]", items)


def judged(steps: list[Step], seen_at: int = STEPS, others: int = 0) -> Analysis:
    """An array of line 10 is kept in each step; a snapshot sees those that there are.

    The last ``others`` of them are in a list.
    """
    program = Program()
    for step in range(STEPS):
        program.alloc(10, 8_000)
        program.temporary(90)
        program.wait(1_000_000)
        if step + 1 == seen_at:
            arrays = [2 * n for n in range(step + 1)]
            first = (steps, arrays[: len(arrays) - others], 1.0)
            rest = ([MODULE, listed(others)], arrays[len(arrays) - others :], 1.0)
            program.snapshot(first, *([rest] if others else []))
    return analyse(program.recording())


def kinds(found: Analysis) -> set[str]:
    return {finding.kind for finding in found.findings}


@pytest.mark.parametrize(
    "seen_at, items, most", [(400, 400, 400), (400, 400, 1_600), (300, 300, 500), (400, 100, 128)]
)
def test_what_fills_a_bound_is_neither_a_leak_nor_healthy(
    seen_at: int, items: int, most: int
) -> None:
    found = judged([MODULE, cached(items, most)], seen_at)

    assert found.verdict.outcome == "cannot-judge"
    assert kinds(found) == {"bounded-cache", "live-at-end"}
    assert f"of at most {most:,} entries" in found.verdict.sentence
    assert found.verdict.sentence.endswith("MB. Run it for longer.")


def test_how_large_it_may_become_is_said() -> None:
    found = judged([MODULE, cached(400, 1_600)])

    assert "full, it holds about 12.8 MB." in found.verdict.sentence


@pytest.mark.parametrize(
    "steps",
    [
        [MODULE, cached(400, 0)],
        [MODULE, cached(400, 1_000_000)],
        [MODULE, cached(8, 8)],
        [MODULE, listed(80), cached(5, 5)],
        [MODULE, cached(8, 8), listed(50)],
    ],
    ids=["no bound", "a far one", "growing items", "many of them", "lists in it"],
)
def test_a_bound_that_bounds_nothing_is_a_leak(steps: list[Step]) -> None:
    found = judged(steps)

    assert found.verdict.outcome == "leak"
    assert "bounded-cache" not in kinds(found)


def test_more_than_what_fits_is_a_leak() -> None:
    assert judged([MODULE, cached(300, 310)], seen_at=300).verdict.outcome == "leak"


def test_what_others_keep_beside_it_is_a_leak() -> None:
    assert judged([MODULE, cached(360, 400)], others=40).verdict.outcome == "leak"
