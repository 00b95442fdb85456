"""Growth of Python's heap that an ``lru_cache`` with a bound may account for."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.recording.format.chains import ChainStep, StepKind

MEGABYTE = 1_000_000
MODULE = ChainStep(StepKind.MODULE, "__main__", "recent")


def judged(
    items: list[int],
    most: int = 10_000,
    step_bytes: float = 1 * MEGABYTE,
    native: float = 0.0,
    kind: StepKind | None = None,
) -> Analysis:
    """Python's heap grows in ten steps; in each a snapshot counts the items of caches, or of one
    container of a kind."""
    program = Program()
    for step, count in enumerate(items):
        for _ in range(40):
            program.temporary(20)
            program.python += step_bytes / 40
            program.native += native / 40
            program.wait(2_000_000)
        if kind is None:
            program.look(([], 0, 0))
            program.cached(count, most)
        else:
            program.look(([MODULE, ChainStep(kind, "kind", "[]", count, most)], count, 0))
        program.count(Entry=1_000 * (step + 1))
    return analyse(program.recording())


def test_a_cache_that_fills_as_the_heap_grows_is_neither_a_leak_nor_healthy() -> None:
    found = judged([500 * (step + 1) for step in range(10)])

    assert found.verdict.outcome == "cannot-judge"
    assert "3,500 items came into lru_caches with a bound: 5,000 of at most 10,000" in (
        found.verdict.sentence
    )
    assert [finding.kind for finding in found.findings][:1] == ["filling-cache"]


@pytest.mark.parametrize("kind", [StepKind.DEQUE, StepKind.LRU_CACHE])
def test_a_container_with_a_bound_is_named(kind: StepKind) -> None:
    found = judged([500 * (step + 1) for step in range(10)], kind=kind)

    assert found.verdict.outcome == "cannot-judge"
    assert "3,500 items came into " in found.verdict.sentence
    assert "__main__" in found.verdict.sentence and "of at most 10,000" in found.verdict.sentence


@pytest.mark.parametrize("most", [0, 30_000])
def test_a_container_without_a_bound_or_far_from_it_explains_nothing(most: int) -> None:
    found = judged([500 * (step + 1) for step in range(10)], most=most, kind=StepKind.DEQUE)

    assert found.verdict.outcome == "python"


@pytest.mark.parametrize(
    "items",
    [
        [500] * 10,  # nothing is cached
        [10 * step for step in range(10)],  # hardly anything is
        [2_000 * min(step + 1, 5) for step in range(10)],  # it is full
        [500 * min(step + 1, 8) for step in range(10)],  # it gains no more
    ],
)
def test_a_cache_that_fills_no_more_explains_nothing(items: list[int]) -> None:
    assert judged(items).verdict.outcome == "python"


def test_a_cache_with_few_of_the_objects_that_grow_explains_nothing() -> None:
    found = judged([20 * (step + 1) for step in range(10)], step_bytes=20 * MEGABYTE)

    assert found.verdict.outcome == "python"


def test_native_memory_that_grows_beside_it_is_native() -> None:
    items = [500 * (step + 1) for step in range(10)]

    assert judged(items, native=2 * MEGABYTE).verdict.outcome == "native"
