"""The passes: their text about the fixtures, and random functions on random ways through them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from compiler import goldens, programs
from compiler.fixtures import tensor
from compiler.paths import Facts, Way

PROGRAMS, WAYS = 60, 12
ARGUMENTS = (tensor(4, 4), tensor(4, 4), tensor(4), 3)
BATCHES = range(8)


@pytest.mark.parametrize("name", goldens.TEXTS)
def test_pass_says_what_its_golden_file_says(name: str) -> None:
    golden = (goldens.FOLDER / f"{name}.txt").read_text(encoding="utf-8")

    assert goldens.text(name) == golden


def facts_of(passes: goldens.Passes) -> Facts:
    return Facts(passes.liveness, passes.slots, passes.layout, passes.destinations)


def walked(passes: goldens.Passes, seed: Any) -> int:
    """Steps on some ways through a function."""
    r, steps = Random(seed), 0
    for _ in range(WAYS):
        way = Way(passes.ir, facts_of(passes), r)
        way.walk()
        steps += way.steps
    return steps


@pytest.mark.parametrize("batch", BATCHES)
def test_facts_hold_on_every_way_through_random_functions(batch: int) -> None:
    """Nothing is read after its last use, nor after another result took its place (S10, S11)."""
    placed = direct = 0
    for seed, function in programs.functions(PROGRAMS, batch * PROGRAMS):
        passes = goldens.Passes(function, ARGUMENTS)
        try:
            assert walked(passes, seed) > WAYS
        except AssertionError as error:
            source = programs.Writer(seed).source()
            raise AssertionError(f"program {seed}: {error}\n{source}\n{text_of(passes)}") from None
        placed += len(passes.slots.placed)
        direct += len(passes.destinations.direct)

    assert placed > 2 * PROGRAMS
    assert direct > PROGRAMS / 8


def text_of(passes: goldens.Passes) -> str:
    return "\n".join(make(passes) for make in goldens.TEXTS.values())


@pytest.mark.parametrize("function", goldens.fixtures.CASES, ids=lambda each: each.__name__)
def test_facts_hold_on_every_way_through_the_fixtures(function: Any) -> None:
    assert walked(goldens.of(function), function.__name__) > 0
