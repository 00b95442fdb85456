"""Liveness (S10): intervals counted in statements, through branches and loops."""

from __future__ import annotations

import re
from typing import Any

import pytest
from compiler import fixtures, goldens
from compiler.programs import function_of

from tlmem.compiler import front, ir
from tlmem.compiler.passes.liveness import Liveness, live
from tlmem.compiler.walking import walk


def interval(function: Any, name: str, at: int = 0) -> tuple[int, int]:
    """The life of a definition of a variable, the first one without a number."""
    found = [each for each in goldens.of(function).liveness.intervals if each.name == name]
    return found[at].first, found[at].last


def liveness_of(body: str) -> tuple[ir.Function, Liveness]:
    """The liveness of a function ``f(x, n)``."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = front.read(function_of(f"def f(x, n):\n{lines}\n", hash(body)))
    return function, live(function)


def test_s10_arguments_are_the_first_definitions() -> None:
    found = goldens.of(fixtures.straight).liveness.intervals

    assert [(each.name, each.defined) for each in found[:4]] == [
        ("x", 1),
        ("w1", 2),
        ("b1", 3),
        ("w2", 4),
    ]


def test_s10_a_life_is_from_definition_to_last_use() -> None:
    assert interval(fixtures.straight, "h") == (7, 8)
    assert interval(fixtures.straight, "y") == (8, 10)
    assert interval(fixtures.straight, "w2") == (4, 8)


def test_s10_what_a_loop_reads_and_was_defined_before_lives_to_its_end() -> None:
    assert interval(fixtures.repeated, "scale") == (4, 8)
    assert interval(fixtures.repeated, "limit") == (2, 8)
    assert interval(fixtures.leaving, "n") == (2, 4)


def test_s10_what_a_loop_reads_lives_to_its_last_statement_also_when_that_leaves_the_loop() -> None:
    function, found = liveness_of(
        "y = x + 1\nfor i in range(n):\n    z = y\n    if i:\n        break"
    )
    (leaving,) = [each for each in walk(function.body) if isinstance(each, ir.Break)]
    (life,) = [each for each in found.intervals if each.name == "y"]

    assert "y" not in found.before[leaving.number]
    assert life.last == leaving.number


def test_s10_what_a_turn_leaves_to_the_next_lives_for_the_whole_loop() -> None:
    assert interval(fixtures.counted, "total", 1) == (4, 10)
    assert interval(fixtures.carried, "h", 1) == (4, 8)


def test_s10_a_shadowed_variable_has_a_life_for_each_value() -> None:
    found = [i for i in goldens.of(fixtures.shadowed).liveness.intervals if i.name == "x"]

    assert [(i.first, i.last) for i in found] == [(1, 2), (2, 3), (4, 5), (5, 6)]


def test_s10_an_early_return_ends_no_life_that_goes_on_elsewhere() -> None:
    found = goldens.of(fixtures.early).liveness

    assert found.is_last_use(7, "h")
    assert not found.is_last_use(4, "h")
    assert found.is_last_use(9, "h")


def test_a_variable_that_one_branch_does_not_need_ends_where_that_begins() -> None:
    function, found = liveness_of("y = x + 1\nif n:\n    z = y\nelse:\n    z = x\nreturn z")
    (branch,) = [each for each in walk(function.body) if isinstance(each, ir.If)]

    assert found.unneeded(branch, "then") == {"x"}
    assert found.unneeded(branch, "orelse") == {"y"}


def test_a_loop_that_is_left_by_break_needs_nothing_of_the_next_turn_there() -> None:
    function, found = liveness_of(
        "y = x + 1\nfor i in range(n):\n    if i == 2:\n        break\n    x = x + y\nreturn x"
    )
    (leaving,) = [each for each in walk(function.body) if isinstance(each, ir.Break)]

    assert found.before[leaving.number] == {"x"}


def test_a_variable_that_is_forgotten_has_a_value_until_then() -> None:
    function, found = liveness_of("y = x + 1\nz = y * 2\ndel y\nreturn z")
    (forgotten,) = [each for each in walk(function.body) if isinstance(each, ir.Forget)]

    assert "y" in found.before[forgotten.number]
    assert "y" not in found.ended(forgotten)


def test_items_of_a_loop_are_held_until_it_is_left() -> None:
    _, found = liveness_of("y = x + 1\nfor z in (x, y):\n    n = n + z\nreturn n")

    assert re.findall(r"y \d+: \[\d+, (\d+)\]", "\n".join(map(text, found.intervals))) == ["5"]


def text(each: Any) -> str:
    return f"{each.name} {each.defined}: [{each.first}, {each.last}]"


@pytest.mark.parametrize("function", fixtures.CASES, ids=lambda each: each.__name__)
def test_every_definition_has_one_interval(function: Any) -> None:
    passes = goldens.of(function)
    defined = [(each.name, each.defined) for each in passes.liveness.intervals]

    assert len(set(defined)) == len(defined)
    assert all(i.first <= i.defined <= i.last for i in passes.liveness.intervals)
