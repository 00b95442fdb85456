"""Random functions, compiled and as Python runs them: the same to the bit, and nothing is left."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from compiler import programs
from runtime.trace import Tracer, live_objects

import tlmem
from tlmem.compiler.compiled import compile
from tlmem.compiler.policies import SOUND

PROGRAMS = 6

HELPERS = {"halved": compile(programs.halved), "either": compile(programs.either)}


def arguments(seed: int, grad: bool = False) -> list[Any]:
    """Two matrices and a vector, the same for the same seed."""
    shapes = ((4, 4), (4, 4), (4,))
    return [
        tlmem.randn(shape, seed=seed + at, requires_grad=grad and at != 1)
        for at, shape in enumerate(shapes)
    ]


def contents(value: Any) -> Any:
    """A result as something that can be compared: arrays, also of what it is a tuple of."""
    if isinstance(value, tuple):
        return tuple(map(contents, value))
    if isinstance(value, tlmem.Tensor):
        return value.shape, value.dtype, value.requires_grad, value.detach().numpy().tobytes()
    return value


def outcome(function: Any, given: list[Any], n: int, grad: bool, **options: Any) -> Any:
    """What a call gives or raises, what it does to its arguments, and their gradients."""
    try:
        result = function(*given, n, **options)
        found: Any = contents(result)
        if grad and isinstance(result, tlmem.Tensor) and result.requires_grad:
            result.sum().backward()
    except Exception as error:
        found = type(error).__name__
    gradients = [contents(each.grad) for each in given]
    return found, contents(tuple(given)), gradients


@contextmanager
def everything_ends() -> Iterator[None]:
    """What was made inside ends inside."""
    gc.collect()
    before = live_objects()
    yield
    gc.collect()
    assert live_objects() == before


def compiled(seed: int, policy: str) -> Any:
    """A random function that is compiled, and calls compiled ones."""
    return compile(
        programs.function_of(programs.Writer(seed).source(), seed, **HELPERS), policy=policy
    )


def forget(function: Any) -> None:
    """Gives back the memory that compiled functions keep."""
    for each in (function, *HELPERS.values()):
        each.compiled.clear()


policies = pytest.mark.parametrize("policy", SOUND)
gradients = pytest.mark.parametrize("grad", [False, True], ids=["plain", "gradients"])


@policies
@gradients
def test_a_compiled_function_does_what_python_does(grad: bool, policy: str) -> None:
    with np.errstate(all="ignore"):
        for seed in range(100, 100 + PROGRAMS):
            source = programs.Writer(seed).source()
            eager, function = programs.function_of(source, seed), compiled(seed, policy)
            with everything_ends():
                for n in (1, 3, 3, 2, 1):
                    expected = outcome(eager, arguments(seed, grad), n, grad)
                    found = outcome(function, arguments(seed, grad), n, grad)
                    assert found == expected, f"program {seed}, n={n}\n{source}"
                forget(function)


@policies
def test_a_compiled_function_computes_into_the_memory_of_its_caller(policy: str) -> None:
    written = 0
    with np.errstate(all="ignore"):
        for seed in range(1000, 1000 + PROGRAMS):
            source = programs.Writer(seed).source()
            eager, function = programs.function_of(source, seed), compiled(seed, policy)
            for n in (1, 3, 3):
                out = tlmem.ones((4, 4))
                expected = outcome(eager, arguments(seed), n, False)
                found = outcome(function, arguments(seed), n, False, out=out)
                if isinstance(expected[0], tuple) and expected[0][:1] == ((4, 4),):
                    assert found == expected, f"program {seed}, n={n}\n{source}"
                    assert contents(out) == expected[0]
                    written += 1
            forget(function)

    assert written > PROGRAMS


@policies
def test_a_compiled_function_frees_what_it_makes_and_misuses_nothing(
    policy: str, trace: Tracer
) -> None:
    with np.errstate(all="ignore"), trace() as t:
        for seed in range(2000, 2000 + PROGRAMS):
            function = compiled(seed, policy)
            for n in (1, 3, 3):
                outcome(function, arguments(seed), n, False)
            forget(function)
            gc.collect()

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE") > PROGRAMS
    assert t.count("ACQUIRE") - t.count("RELEASE") <= 0
