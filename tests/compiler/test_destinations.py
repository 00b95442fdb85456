"""Destination passing and moves that a compiled function does by itself (S20, S21), in events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiler.fixtures import Layer
from runtime.trace import Tracer

import tlmem
from tlmem.compiler.compiled import compile
from tlmem.runtime.errors import WrongDtype, WrongShape

OWNERSHIP = ("ALLOC", "FREE", "ACQUIRE", "RELEASE", "REGISTER", "UNREGISTER", "COPY", "PROMOTE")


def forward(x, w1, w2):
    h = tlmem.relu(x @ w1)
    return h @ w2


def chosen(x, y, n):
    if n > 1:
        return x
    return y * 2


def failing(x, n):
    y = x * 2
    if n == 0:
        raise KeyError(n)
    return y + 1


def held(x):
    y = x + 1
    s = Layer(y, x)
    return s


def operands() -> list[Any]:
    return [tlmem.randn(shape, seed=1) for shape in ((4, 8), (8, 16), (16, 2))]


def test_s20_a_result_in_the_callers_memory_has_no_event_at_all(trace: Tracer) -> None:
    function, out = compile(forward), tlmem.empty((4, 2))
    given = operands()
    expected = forward(*given)
    function(*given, out=out)
    handle = out.handle
    out.fill(0)
    with trace(out=out) as t:
        result = function(*given, out=out)
    function.compiled.clear()

    assert t.rows(*OWNERSHIP, driver=True) == []
    assert result is out
    assert (out.handle, out.count) == (handle, 1)
    assert out.tolist() == expected.tolist()


def test_s20_a_result_that_goes_to_the_callers_memory_has_no_other(trace: Tracer) -> None:
    function, out = compile(forward, policy="v3"), tlmem.empty((4, 2))
    given = operands()
    function(*given, out=out)
    with trace() as t:
        function(*given, out=out)
    function.compiled.clear()

    assert t.bytes_of("ALLOC") == 2 * (4 * 4 * 16)
    assert t.count("SLOT_GET") == 2  # for x @ w1 and its relu, and not for the result


def test_s20_memory_that_is_also_an_operand_gets_the_same_values() -> None:
    function = compile(square)
    x = tlmem.randn((4, 4), seed=2)
    expected = square(x).tolist()
    function(x, out=x)
    function.compiled.clear()

    assert x.tolist() == expected


def square(x):
    y = x @ x
    return y @ x - x


def test_s20_what_is_not_made_in_the_call_is_copied_and_nobody_holds_more(trace: Tracer) -> None:
    function, out = compile(chosen), tlmem.empty(3)
    x, y = tlmem.ones(3), tlmem.ones(3)
    with trace(out=out, x=x, y=y) as t:
        function(x, y, 2, out=out)
    function.compiled.clear()

    assert out.tolist() == [1, 1, 1]
    assert t.of("out") == t.of("x") == t.of("y") == []


def test_s20_memory_that_does_not_fit_is_refused_and_not_written() -> None:
    function = compile(chosen)
    x, y = tlmem.ones(3), tlmem.ones(3)
    for wrong, error in ((tlmem.zeros(4), WrongShape), (tlmem.zeros(3, "float64"), WrongDtype)):
        for n in (1, 2):
            with pytest.raises(error):
                function(x, y, n, out=wrong)
        assert not np.any(wrong.numpy())
    function.compiled.clear()


def test_s20_memory_stays_with_its_owner_when_the_function_fails(trace: Tracer) -> None:
    function, out = compile(failing), tlmem.zeros(3)
    with trace(out=out) as t, pytest.raises(KeyError):
        function(tlmem.ones(3), 0, out=out)
    function.compiled.clear()

    assert t.of("out") == []
    assert (out.count, out.tolist()) == (1, [0, 0, 0])


def events_of_struct(policy: str, trace: Tracer) -> tuple[int, int, int]:
    """Acquires and releases of what a function puts into a struct, and its count afterwards."""
    function, x = compile(held, policy=policy), tlmem.ones(3)
    function(x).free()
    with trace(x=x) as t:
        made = function(x)
        t.name(y=made.weight)
        count = made.weight.count
        made.free()
    function.compiled.clear()
    of_y = t.of("y")
    return of_y.count("ACQUIRE"), of_y.count("RELEASE"), count


def renamed(layer, x):
    a = layer.weight
    b = a
    c = b  # b has a count of its own and is not read again
    layer.weight = x
    return (c * 2).sum().item()


def kept(layer, x):
    a = layer.weight
    b = a
    layer.bias = b
    layer.weight = x
    return x.sum().item()


@pytest.mark.parametrize("policy", ["v3", "v5"])
@pytest.mark.parametrize("body", [renamed, kept])
def test_s21_a_move_passes_on_a_count_that_was_acquired(
    body: Any, policy: str, trace: Tracer
) -> None:
    function = compile(body, policy=policy)
    for _ in range(3):
        with tlmem.scope("caller"):
            weight, bias, x = tlmem.ones(3), tlmem.ones(3), tlmem.zeros(3)
            layer = tlmem.struct(Layer(weight, bias))
            with trace(weight=weight) as t:
                assert function(layer, x) == (6.0 if body is renamed else 0.0)
            assert t.misuses() == []
            held = [text.split(" ")[0] for text in weight.holders()]
            assert held == (["scope"] if body is renamed else ["scope", "field"])
        assert not weight.alive
    function.compiled.clear()


def test_s21_a_move_saves_one_acquire_and_one_release(trace: Tracer) -> None:
    copied, moved = events_of_struct("v2", trace), events_of_struct("v3", trace)

    assert copied[0] - moved[0] == 1
    assert copied[1] - moved[1] == 1
    assert copied[2] == moved[2] == 1
