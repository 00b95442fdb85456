"""Calling compiled functions: the same results and errors as before, ``out=``, specialisations."""

from __future__ import annotations

import gc
import inspect
import threading
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tlmem
from tlmem.compiler.compiled import MOST_SPECIALISATIONS

SCALE = 2.0


def tensor(*shape: int, seed: int = 0, **options: Any) -> tlmem.Tensor:
    return tlmem.randn(shape, seed=seed, **options)


def same(one: Any, other: Any) -> bool:
    """To the bit."""
    return one.dtype == other.dtype and np.array_equal(one.numpy(), other.numpy())


def test_a_compiled_function_looks_like_the_one_it_was_made_of() -> None:
    def forward(x, /, w, b=3, *, k=2):
        """Does it."""
        return x @ w + b * k

    made = tlmem.compile(forward)
    x, w = tensor(2, 3), tensor(3, 4)

    assert (made.__name__, made.__doc__, made.__module__) == ("forward", "Does it.", __name__)
    assert str(inspect.signature(made)) == "(x, /, w, b=3, *, k=2, out=None)"
    assert same(made(x, w), forward(x, w))
    assert same(made(x, w=w, b=1), forward(x, w, 1))
    assert same(made(x, w, k=5), forward(x, w, k=5))
    for wrong in ((lambda: made(x)), (lambda: made(x, w, 1, 2)), (lambda: made(x=x, w=w))):
        with pytest.raises(TypeError, match=r"forward\(\)"):
            wrong()


def test_out_is_the_result() -> None:
    @tlmem.compile
    def forward(x, w):
        h = tlmem.relu(x @ w)
        return h + 1

    x, w, y = tensor(2, 3), tensor(3, 4), tlmem.zeros((2, 4))
    assert forward(x, w, out=y) is y
    assert same(y, forward(x, w))
    with pytest.raises(tlmem.WrongShape, match="out is"):
        forward(x, w, out=tlmem.zeros((2, 5)))
    with pytest.raises(tlmem.WrongDtype, match="out is"):
        forward(x, w, out=tlmem.zeros((2, 4), "float64"))
    with pytest.raises(TypeError, match=r"out must be a tlmem\.Tensor"):
        forward(x, w, out=np.zeros((2, 4)))


def test_out_of_what_is_no_tensor_is_a_type_error() -> None:
    @tlmem.compile
    def forward(x):
        return x + 1, x

    with pytest.raises(TypeError, match="returns? one tensor"):
        forward(tensor(2), out=tensor(2))


def test_out_may_be_an_argument() -> None:
    @tlmem.compile
    def forward(x, w):
        h = x @ w
        y = h + x
        z = y * x
        return z - x

    x, w = tensor(3, 3), tensor(3, 3, seed=1)
    expected = forward(x, w)
    assert forward(x, w, out=x) is x
    assert same(x, expected)


def test_a_result_that_needs_a_gradient_is_not_written_to_out() -> None:
    @tlmem.compile
    def forward(x, w):
        return x @ w + 1

    x, w = tensor(2, 3), tensor(3, 4, requires_grad=True)
    with pytest.raises(tlmem.NotDifferentiable, match="it needs a gradient"):
        forward(x, w, out=tensor(2, 4))
    with tlmem.no_grad():
        expected = forward(x, w)
        assert same(forward(x, w, out=tensor(2, 4)), expected)
    y = forward(x, w)
    y.sum().backward()
    assert w.grad is not None


def test_each_kind_of_arguments_has_a_specialisation() -> None:
    @tlmem.compile
    def forward(x, n):
        return x * n + SCALE

    for _ in range(2):
        assert forward(tensor(2), 3.0).shape == (2,)
        assert forward(tensor(2), 4.0).shape == (2,)
        assert forward(tensor(3), 3.0).shape == (3,)
        assert forward(tensor(2, dtype="float64"), 3.0).dtype == "float64"
        assert forward(2, 3.0) == 8.0
    assert len(forward.compiled.specialisations) == 4


def test_an_integer_that_changes_is_planned_for_once() -> None:
    @tlmem.compile
    def forward(x, n):
        return x[:n] * 2

    x = tensor(30)
    for n in range(30):
        assert same(forward(x, n), x[:n] * 2)
    assert len(forward.compiled.specialisations) == 1


def test_beyond_the_most_specialisations_there_is_one_for_everything() -> None:
    @tlmem.compile
    def forward(x):
        return x * 2

    for length in range(MOST_SPECIALISATIONS + 10):
        assert forward(tensor(length)).shape == (length,)
    assert len(forward.compiled.specialisations) == MOST_SPECIALISATIONS + 1
    assert forward("ab") == "abab"


def test_clearing_forgets_all_specialisations() -> None:
    @tlmem.compile
    def forward(x):
        return tlmem.relu(x) * 2

    expected = forward(tensor(4))
    forward.compiled.clear()
    assert forward.compiled.specialisations == []
    assert same(forward(tensor(4)), expected)


def test_names_from_outside_are_read_at_each_call() -> None:
    factor = tlmem.ones(3)

    @tlmem.compile
    def forward(x):
        return x * factor + SCALE

    global SCALE
    x = tensor(3)
    try:
        assert same(forward(x), x * factor + 2.0)
        SCALE = 5.0
        assert same(forward(x), x * factor + 5.0)
        factor = tlmem.full((3,), 3.0)
        assert same(forward(x), x * factor + 5.0)
        factor = 2
        assert same(forward(x), x * 2 + 5.0)
        SCALE = tlmem.ones((2, 1))
        assert forward(x).shape == (2, 3)
    finally:
        SCALE = 2.0


def test_errors_name_the_line_of_the_program() -> None:
    @tlmem.compile
    def forward(x, w):
        h = x + 1
        return h @ w

    line = forward.__wrapped__.__code__.co_firstlineno + 3
    for _ in range(2):
        with pytest.raises(tlmem.WrongShape) as caught:
            forward(tensor(2, 3), tensor(2, 3))
        frames = traceback.extract_tb(caught.tb)
        mine = [each for each in frames if each.filename == __file__]
        assert [each.lineno for each in mine[1:]] == [line]
        assert (mine[-1].name, mine[-1].line) == ("forward", "return h @ w")


def test_a_freed_argument_is_named_as_it_is_without_compiling() -> None:
    @tlmem.compile
    def forward(x, w):
        h = x @ w
        return h + x

    x, w = tensor(3, 3), tensor(3, 3)
    forward(x, w)
    x.free()
    with pytest.raises(tlmem.UseAfterFree, match=r"tensor float32\[3,3\]"):
        forward(x, w)


def test_methods_are_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.__b = tensor(3, 3), tensor(3)

        @tlmem.compile
        def forward(self, x):
            return tlmem.relu(x @ self.w) + self.__b

        def eager(self, x):
            return tlmem.relu(x @ self.w) + self.__b

    model, x = Model(), tensor(2, 3)
    for _ in range(2):
        assert same(model.forward(x), model.eager(x))
        assert same(model.forward(x, out=tensor(2, 3)), model.eager(x))
    model.w = tensor(3, 3, seed=5)
    assert same(model.forward(x), model.eager(x))
    model.w = tensor(3, 3, seed=5, dtype="float64")
    assert same(model.forward(x), model.eager(x))


def test_functions_call_each_other_and_themselves() -> None:
    @tlmem.compile
    def down(x, n):
        if n == 0:
            return x
        y = down(x * 2, n - 1)
        return y + x

    def eager(x, n):
        return x if n == 0 else eager(x * 2, n - 1) + x

    x = tensor(3, 4)
    for n in (0, 1, 5):
        assert same(down(x, n), eager(x, n))


@dataclass
class Layer:
    w: Any
    b: Any


def test_structs_go_in_and_come_out() -> None:
    @tlmem.compile
    def step(layer, x):
        h = x @ layer.w + layer.b
        made = Layer(h * 2, layer.b)
        made.b = made.w + 1
        return made

    layer, x = Layer(tensor(3, 3), tensor(3)), tensor(2, 3)
    for given in (layer, tlmem.struct(layer)):
        for _ in range(2):
            made = step(given, x)
            assert same(made.b, (x @ layer.w + layer.b) * 2 + 1)


def test_what_is_no_tensor_is_computed_as_python_does() -> None:
    @tlmem.compile
    def mixed(a, b):
        total = a + b
        for i in range(3):
            if i == b:
                continue
            total = total * 2 if i else total + 1
        while total < 100:
            total += 7
        return total, f"{total:>5}"

    for pair in ((1, 2), (1.5, 0), (True, 1), (np.float64(3), np.int64(2))):
        eager = mixed.__wrapped__
        assert mixed(*pair) == eager(*pair)
        assert type(mixed(*pair)[0]) is type(eager(*pair)[0])


def test_each_loop_and_exit_gives_what_python_gives() -> None:
    def search(x, n):
        found = None
        for i in range(n):
            y = x * i
            if i == 1:
                continue
            while True:
                y = y + 1
                if y.sum().item() > 10:
                    break
                if i > 5:
                    return y, i
            found = y
        return found, n

    made = tlmem.compile(search)
    x = tlmem.full((3,), -0.25)
    for n in (0, 1, 4, 9):
        (one, at), (other, expected) = made(x, n), search(x, n)
        assert at == expected
        assert one is other is None or same(one, other)


def test_several_threads_may_call_at_once() -> None:
    @tlmem.compile
    def forward(x, w):
        h = tlmem.relu(x @ w)
        h = tlmem.tanh(h) + x
        return h * 2

    w = tensor(16, 16, seed=1)
    inputs = [tensor(8 + i % 3, 16, seed=i) for i in range(12)]
    expected = [forward.__wrapped__(x, w) for x in inputs]
    wrong: list[int] = []

    def work(first: int) -> None:
        for turn in range(100):
            at = (first + turn) % len(inputs)
            if not same(forward(inputs[at], w), expected[at]):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_an_unknown_policy_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no policy 'v9'; use one of default"):
        tlmem.compile(policy="v9")


def test_nothing_is_kept_when_the_function_is_gone() -> None:
    @tlmem.compile
    def forward(x, w):
        return tlmem.relu(x @ w) + 1

    forward(tensor(4, 4), tensor(4, 4), out=tensor(4, 4))
    del forward
    gc.collect()  # the fixture finds that nothing is left
