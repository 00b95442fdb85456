"""Moves at last use (S21) and results that are computed into the caller's memory (S20)."""

from __future__ import annotations

from compiler import goldens
from compiler.fixtures import tensor
from compiler.programs import function_of, functions

from tlmem.compiler.passes.moves import last_uses
from tlmem.compiler.walking import walk

ARGUMENTS = (tensor(4, 4), tensor(4, 4), tensor(4), 3)


def passes_of(body: str) -> goldens.Passes:
    """The passes over a function ``f(x, n)``."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = function_of(f"def f(x, n):\n{lines}\n", hash(body))
    return goldens.Passes(function, (tensor(4, 4), 3))


def moved(body: str) -> list[tuple[int, str]]:
    """Line in the body, from 1, and name of each read that moves."""
    passes = passes_of(body)
    return [(each.line - 1, each.name) for each in last_uses(passes.ir, passes.liveness)]


def test_s21_the_last_use_of_a_plain_variable_moves() -> None:
    assert moved("y = x + 1\nz = y\nreturn z") == [(2, "y"), (3, "z")]
    assert moved("y = x + 1\ns = Layer(y, 1)\nreturn s") == [(2, "y"), (3, "s")]
    assert moved("y = x + 1\ns = Layer(1, y)\ns.bias = x * 2\nreturn s")[0] == (2, "y")


def test_s21_a_use_that_is_not_the_last_does_not() -> None:
    assert moved("y = x + 1\nz = y\nreturn z + y") == [(3, "%1")]


def test_s21_arguments_and_what_is_borrowed_do_not() -> None:
    assert moved("z = x\nreturn 0") == []
    assert moved("s = Layer(x, 1)\nreturn 0") == []
    assert moved("s = Layer(x, 1)\ny = s.weight\nz = y\nreturn 0") == []


def test_s21_what_a_loop_uses_again_does_not() -> None:
    body = "y = x + 1\nfor i in range(n):\n    z = y\nreturn 0"
    leaves = "y = x + 1\nfor i in range(n):\n    z = y\n    break\nreturn 0"
    inside = "for i in range(n):\n    y = x + i\n    z = y\nreturn 0"

    assert moved(body) == []
    assert moved(leaves) == []
    assert moved(inside) == [(3, "y")]


def test_s21_a_value_that_may_be_an_argument_does_not() -> None:
    assert moved("y = x\nif n:\n    x = y + 1\nz = x\nreturn 0") == [(1, "x")][1:]


def test_s21_what_is_read_twice_does_not() -> None:
    assert moved("y = x + 1\ns = Layer(y, y)\nreturn 0") == []


def test_s21_no_variable_moves_twice_on_a_way_through_a_random_function() -> None:
    found = 0
    for _, function in functions(80, 9000):
        passes = goldens.Passes(function, ARGUMENTS)
        uses = last_uses(passes.ir, passes.liveness)
        assert len(set(uses)) == len(uses)
        numbers = {each.number for each in walk(passes.ir.body)}
        for each in uses:
            assert each.number in numbers
            assert each.name not in passes.liveness.after[each.number]
        found += len(uses)

    assert found > 80


# ---- destinations ----


def into_out(body: str) -> tuple[list[str], list[str]]:
    """The variables whose results go straight into ``out``, and why other returns copy."""
    found = passes_of(body)
    names = [next(iter(found.shapes.values[n])) for n in sorted(found.destinations.direct)]
    return names, list(found.destinations.copied.values())


def test_s20_the_result_of_the_last_operation_is_computed_into_out() -> None:
    assert into_out("y = x + 1\nreturn y * 2") == (["%1"], [])
    assert into_out("y = x + 1\nz = y\nreturn z") == (["y"], [])
    assert into_out("y = x + 1\nx = y.sum(0)\nif n:\n    return x\nreturn x") == (["x"], [])


def test_s20_each_branch_may_have_its_own() -> None:
    body = "if n:\n    y = x + 1\nelse:\n    y = x * 2\nreturn y"

    assert into_out(body) == (["y", "y"], [])


def test_s20_what_is_not_made_here_alone_is_copied() -> None:
    assert into_out("return x") == ([], ["it is not made here"])
    assert into_out("y = x + 1\nreturn y.T") == ([], ["it is not made here"])
    assert into_out("y = x + 1\nreturn y, n") == ([], ["it is not the result of one operation"])
    assert into_out("y = x + 1\ns = Layer(y, n)\nreturn y") == ([], ["stored in a struct"])
    assert into_out("return tlmem.zeros(3)") == ([], ["zeros takes no destination"])


def test_s20_two_results_that_are_needed_together_are_not_both_in_out() -> None:
    body = "y = x + 1\nz = x @ y\nif n:\n    return y\nreturn z @ y"
    names, reasons = into_out(body)

    assert names == ["%1"]
    assert reasons == ["another result is in it"]
