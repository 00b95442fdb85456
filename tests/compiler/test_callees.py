"""Results of compiled functions that a compiled one calls are planned like those of operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiler.fixtures import Layer

import tlmem
from tlmem.compiler.compiled import compile

kept: list[Any] = []
SCALE = 2.0


def hidden(x, w):
    return tlmem.relu(x @ w)


def halved(x, n):
    y = x * 0.5
    for _ in range(n):
        y = y * 0.5
    return y


def passed_on(x, w):
    if w.shape[0] > 100:
        return x @ w
    return x


def turned(x, w):
    return (x @ w).T


def scaled(x, w):
    return (x @ w) * SCALE


def in_place(x, w):
    x += 1
    return x @ w


def in_struct(x, w):
    s = Layer(x, w)
    return s.weight @ s.bias


def hidden_twice(x, w):
    y = x @ w
    return hidden(y, w) + 1


NAMES = {
    each.__name__: each
    for each in (hidden, halved, passed_on, turned, scaled, in_place, in_struct, hidden_twice)
}


def network(x, w, v):
    h = called(x, w)  # noqa: F821
    g = called(h * 2, w)  # noqa: F821
    return (h + g) @ v


def network_of(name: str) -> tuple[Any, Any]:
    """The function as written and compiled, where ``called`` is one of those above."""
    space = {**globals(), "hidden": compile(hidden), "called": compile(NAMES[name])}
    eager = type(network)(network.__code__, {**globals(), "called": NAMES[name]})
    function = type(network)(network.__code__, space, "network")
    return eager, compile(function)


def operands(dtype: str = "float32") -> list[Any]:
    return [tlmem.randn((4, 4), dtype, seed=seed) for seed in range(3)]


def planned(function: Any) -> int:
    """How many calls have a destination."""
    return len(function.compiled.specialisations[-1].plan.callees)


def outcome(function: Any, **options: Any) -> list[bytes]:
    given = operands()
    result = function(*given, **options)
    return [each.numpy().tobytes() for each in (result, *given)]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "halved"])
def test_a_call_does_what_it_does_as_written(name: str) -> None:
    eager, function = network_of(name)
    expected = outcome(eager)
    for _ in range(2):
        assert outcome(function) == expected
        out = tlmem.empty((4, 4))
        assert outcome(function, out=out) == expected
        assert out.numpy().tobytes() == expected[0]


def test_a_call_that_only_computes_has_a_destination_and_makes_no_event(trace) -> None:
    _, function = network_of("hidden")
    given = operands()
    out = function(*given)
    function(*given, out=out)
    with trace() as t:
        function(*given, out=out)

    assert planned(function) == 2
    assert t.rows(driver=True) == []


@pytest.mark.parametrize(
    "name", ["passed_on", "turned", "scaled", "in_place", "in_struct", "hidden_twice"]
)
def test_a_call_that_may_be_more_than_that_stays_a_call(name: str) -> None:
    _, function = network_of(name)
    function(*operands())
    assert planned(function) == 0


def test_a_number_among_the_arguments_is_fine() -> None:
    function = compile(
        type(halving)(halving.__code__, {**globals(), "called": compile(halved)}, "halving")
    )
    x = tlmem.randn((3, 3), seed=1)
    for n in (0, 2, 3, 2):
        expected = halved(x, n) + x
        assert function(x, n).numpy().tobytes() == expected.numpy().tobytes()
    assert planned(function) == 1


def halving(x, n):
    return called(x, n) + x  # noqa: F821


def test_a_name_that_means_another_function_later_is_heard_of() -> None:
    space = {**globals(), "called": compile(hidden)}
    function = compile(type(network)(network.__code__, space, "network"))
    given = operands()
    function(*given)
    assert planned(function) == 2
    space["called"] = lambda x, w: (kept.append(x), x.copy())[1]
    h, g = given[0], given[0] * 2
    try:
        assert function(*given).numpy().tobytes() == ((h + g) @ given[2]).numpy().tobytes()
        assert np.array_equal(kept[1].numpy(), g.numpy())
    finally:
        kept.clear()


def test_weights_that_need_gradients_have_them() -> None:
    eager, function = network_of("hidden")
    found = []
    for each in (eager, function):
        x, w, v = operands()
        w.requires_grad_()
        each(x, w, v).sum().backward()
        found.append(w.grad.numpy().tobytes())
        w.grad = None
    assert found[0] == found[1]


def test_a_callee_that_fails_leaves_nothing_behind_and_says_so_itself() -> None:
    eager, function = network_of("hidden")
    x, w, v = operands()
    function(x, w, v)
    w.free()
    messages = []
    for each in (eager, function):
        with pytest.raises(tlmem.UseAfterFree) as caught:
            each(x, w, v)
        messages.append(str(caught.value).partition(" at ")[0])
    assert messages[0] == messages[1]
