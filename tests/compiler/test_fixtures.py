"""Every function of the golden files is also run: under every policy it gives what Python gives and
what NumPy gives, and leaves nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from compiler import fixtures
from runtime.trace import Tracer, live_objects

import tlmem
from tlmem.compiler.compiled import compile
from tlmem.compiler.passes.abstract import PlainType, StructType, TensorType
from tlmem.compiler.policies import POLICIES, SOUND
from tlmem.runtime.core import lib

PLAIN = {bool: (True, False), int: (0, 2, 5)}
"""Values for an argument of which a fixture says the class only."""

NUMPY = SimpleNamespace(
    relu=lambda x: np.maximum(x, 0),
    mean=np.mean,
    exp=np.exp,
    zeros=lambda *shape: np.zeros(shape, "float32"),
)
"""What the fixtures use of ``tlmem``, by NumPy."""


def array(known: TensorType, seed: int) -> np.ndarray:
    """Contents for a tensor that a fixture describes."""
    values = np.random.default_rng(seed).standard_normal(known.shape) * 4
    return values.astype(known.dtype)


def given(known: Any, seed: int, choice: int, make: Any) -> Any:
    """An argument; ``make`` gets the contents of a tensor and whether it needs a gradient."""
    if isinstance(known, TensorType):
        return make(array(known, seed), bool(known.grad))
    if isinstance(known, StructType):
        parts = {n: given(each, seed + i, choice, make) for i, (n, each) in enumerate(known.fields)}
        return fixtures.Layer(**parts)
    if isinstance(known, PlainType):
        values = PLAIN[known.kind]
        return values[choice % len(values)]
    return known


def arguments(function: Any, choice: int, make: Any) -> list[Any]:
    """The arguments of a fixture; ``choice`` picks a value where there are several."""
    return [given(each, 10 * at, choice, make) for at, each in enumerate(fixtures.CASES[function])]


def tensor(values: np.ndarray, grad: bool) -> tlmem.Tensor:
    return tlmem.tensor(values, requires_grad=grad)


def contents(value: Any) -> tuple[Any, ...]:
    array = np.asarray(value if isinstance(value, np.ndarray) else value.detach().numpy())
    return array.dtype.name, array.shape, array.tobytes()


def bound(function: Any, decorate: Any, **names: Any) -> Any:
    """The fixture in a module of its own, where its name is what was made of it."""
    space = {**function.__globals__, **names}
    made = decorate(FunctionType(function.__code__, space, function.__name__))
    space[function.__name__] = made
    return made


fixture = pytest.mark.parametrize("function", fixtures.CASES, ids=lambda each: each.__name__)


@pytest.fixture
def ending_what_leaks() -> Iterator[None]:
    """Frees what ``v3-overretain`` leaves behind on purpose."""
    gc.collect()
    before = live_objects()
    yield
    gc.collect()
    for each in live_objects() - before:
        if lib.tlm_check(each) == lib.TLM_OK:  # not freed with a struct
            lib.tlm_free(each)


@fixture
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.usefixtures("ending_what_leaks")
def test_a_fixture_gives_what_python_and_numpy_give(function: Any, policy: str) -> None:
    compiled = bound(function, compile(policy=policy))
    eager = bound(function, lambda each: each)
    by_numpy = bound(function, lambda each: each, tlmem=NUMPY)
    for choice in (0, 1, 2, 0):
        found = compiled(*arguments(function, choice, tensor))
        expected = eager(*arguments(function, choice, tensor))
        assert contents(found) == contents(expected)
        known = by_numpy(*arguments(function, choice, lambda values, _: values))
        np.testing.assert_allclose(found.detach().numpy(), known, rtol=2e-5, atol=2e-5)
    compiled.compiled.clear()


@fixture
@pytest.mark.parametrize("policy", SOUND)
def test_a_fixture_leaves_nothing_and_misuses_nothing(
    function: Any, policy: str, trace: Tracer
) -> None:
    compiled = bound(function, compile(policy=policy))
    gc.collect()
    before = live_objects()
    with trace() as t:
        for choice in (0, 1, 2, 0):
            compiled(*arguments(function, choice, tensor))
        compiled.compiled.clear()
        gc.collect()

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE") > 0
    assert live_objects() == before
    # An object begins with one count: each holder that came later has let go.
    assert t.count("RELEASE") <= t.count("ACQUIRE") + t.count("ALLOC")
    assert {row[1] for row in t.rows("ALLOC")} == {row[1] for row in t.rows("FREE")}
