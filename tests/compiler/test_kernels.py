"""NumPy into planned memory gives the bits of the operation itself, whatever the numbers are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tlmem
from tlmem.compiler import ir
from tlmem.compiler.backend.direct import direct_of
from tlmem.compiler.backend.kernels import SPECIAL, NoKernel, kernel_of
from tlmem.compiler.passes.abstract import abstract
from tlmem.compiler.passes.rules_elements import ONE, TWO
from tlmem.compiler.passes.shape_rules import result_of
from tlmem.runtime.tensors.core_ops import apply_strictly

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e38, -1e38, 1.5, -2.5, 0.5, 100, -100]
NUMBERS = (2, 0.5, -1, 3.0, True, 0)


def tensors(dtype: str) -> dict[str, Any]:
    """Odd numbers in all pairs, a matrix with a row and a column, by name."""
    values, random = np.array(ODD), np.random.default_rng(3)
    if dtype == "int64":
        values = np.arange(-7, 7)
    if dtype == "bool":
        values = np.array([True, False])
    count = len(values)

    def made(*shape: int) -> Any:
        numbers = random.standard_normal(shape) * 5
        return tlmem.tensor(numbers > 0 if dtype == "bool" else numbers.astype(dtype), dtype)

    return {
        "left": tlmem.tensor(np.repeat(values, count), dtype),
        "right": tlmem.tensor(np.tile(values, count), dtype),
        "matrix": made(37, 53),
        "row": made(53),
        "column": made(37, 1),
    }


def differs(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> bool | None:
    """Whether the kernel gives other bits than the operation; None when there is no kernel."""
    known = tuple(tuple(map(abstract, g)) if isinstance(g, list) else abstract(g) for g in given)
    try:
        made = result_of(name, known, options)
        kernel = kernel_of(ir.Op("y", name, (), form="function"), known, options, made)
    except (NoKernel, tlmem.WrongDtype, ValueError, TypeError):
        return None
    expected = getattr(tlmem, {"abs": "absolute"}.get(name, name))(*given, **options).numpy()
    out = np.empty(made.shape, made.dtype)
    flat = (
        given[0]
        if kernel.joined
        else [given[k] if isinstance(k, int) else k for k in kernel.operands]
    )
    read = [each._data() if isinstance(each, tlmem.Tensor) else each for each in flat]
    found = kernel.function(*([read] if kernel.joined else read), **dict(kernel.options), out=out)
    assert found is out
    return bool(np.ascontiguousarray(expected).tobytes() != out.tobytes())


def verdicts(name: str, dtype: str) -> list[bool]:
    """For each way to call an operation that has a kernel, whether that gives other bits."""
    t = tensors(dtype)
    left, right, matrix = t["left"], t["right"], t["matrix"]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    if name in TWO:
        calls += [((left, right), {}), ((matrix, t["row"]), {}), ((matrix, t["column"]), {})]
        calls += [((each, n), {}) for n in NUMBERS for each in (left, matrix)]
        calls += [((n, right), {}) for n in NUMBERS]
    elif name in ("matmul", "dot"):
        for a, b, c in ((1, 1, 1), (5, 7, 3), (1, 53, 37), (37, 53, 1), (40, 40, 40)):
            x, y = (tlmem.randn(shape, seed=a).astype(dtype) for shape in ((a, b), (b, c)))
            v = tlmem.randn((b,), seed=b).astype(dtype)
            calls += [((x, y), {}), ((y.T, x.T), {}), ((x, v), {}), ((v, y), {}), ((v, v), {})]
    elif name in ("concat", "stack"):
        calls += [(([matrix, matrix],), {}), (([left, right],), {"axis": 0})]
    else:
        calls += [((each,), {}) for each in (left, matrix, matrix.T)]
    if name in SPECIAL and name not in ("matmul", "dot", "concat", "stack"):
        calls += [((each,), {"axis": axis}) for each in (matrix, matrix.T) for axis in (0, 1, -1)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [differs(name, given, options) for given, options in calls]
    return [each for each in found if each is not None]


OF_CORE_ALONE = {name for name, row in ONE.items() if row.ufunc is None}


@pytest.mark.parametrize("name", sorted({*TWO, *ONE, *SPECIAL, "abs"} - OF_CORE_ALONE))
def test_a_kernel_gives_the_bits_of_its_operation(name) -> None:
    found = {dtype: verdicts(name, dtype) for dtype in ("float32", "float64", "int64", "bool")}
    assert sum(map(len, found.values())) > 0, "no way to call it has a kernel"
    assert not any(any(each) for each in found.values()), found


@pytest.mark.parametrize("name", sorted(OF_CORE_ALONE))
def test_what_numpy_does_not_have_is_computed_by_the_core(name) -> None:
    x = tlmem.randn((6, 5), "float64", seed=1)
    assert differs(name, (x,), {}) is None
    same_as_core(name, x, (), {})


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}], ids=str)
def test_the_core_is_called_as_the_function_calls_it(name, options) -> None:
    x = tlmem.randn((6, 5, 4), "float64", seed=1)
    same_as_core(name, x, (), options)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "relu", "exp", "tanh", "negative"])
def test_functions_of_elements_and_rows_are_called_as_well(name) -> None:
    same_as_core(name, tlmem.randn((6, 5), "float64", seed=1), (), {})
    same_as_core("reshape", tlmem.randn((6, 5), seed=1), (3, -1), {})


def same_as_core(name: str, x: Any, rest: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Fails unless the direct call of the core gives what the function gives."""
    op, known = ir.Op("y", name, (), form="function"), (abstract(x), *rest)
    found = direct_of(op, known, options, result_of(name, known, options))
    assert found is not None
    number, parameters = found
    expected = getattr(tlmem, name)(x, *rest, **options)
    made = apply_strictly(number, 1, x, *parameters)
    assert (made.shape, made.numpy().tobytes()) == (expected.shape, expected.numpy().tobytes())


def test_sums_of_fractions_and_unlike_operands_are_left_to_the_core() -> None:
    x, n = tlmem.ones((3, 3)), tlmem.ones((3, 3), "int64")
    for name, given in (("sum", (x,)), ("add", (x, n)), ("add", (n, 0.5)), ("softmax", (x,))):
        assert differs(name, given, {}) is None
