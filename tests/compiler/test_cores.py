"""What is planned is computed by the core: the same ops with the same bits, in the frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tlmem
from tlmem.runtime.errors import UseAfterFree, WrongDtype, WrongShape


def attention(q, k, v):
    scores = tlmem.softmax(q @ k / 2.0, 1)
    return scores @ v - tlmem.mean(v, 0)


def spread(x, y, z):
    distance = x - tlmem.mean(x, 1, True)
    scaled = distance / tlmem.sqrt(tlmem.var(x, 1, True) + 1e-5)
    return tlmem.log_softmax(scaled, -1) * tlmem.sum(y, 0) + tlmem.max(z, 0)


def chosen(x, y, z):
    positive = tlmem.where(x > 0, x, 0.25)
    wide = tlmem.concat([positive, y], 1)[:, 2:6]
    return tlmem.stack([wide, z])[0] * wide


WRITTEN = (attention, spread, chosen)
each = pytest.mark.parametrize("written", WRITTEN)


def operands(dtype: str = "float32") -> list[Any]:
    return [tlmem.randn((4, 4), dtype, seed=seed) for seed in range(3)]


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_those_of_eager_execution_to_the_bit(written, dtype) -> None:
    made, given = tlmem.compile(written), operands(dtype)
    expected = written(*given).numpy().tobytes()
    out = tlmem.empty((4, 4), dtype)
    for _ in range(3):
        assert made(*given).numpy().tobytes() == expected
        assert made(*given, out=out).numpy().tobytes() == expected
        out.fill(7)


@each
def test_a_steady_call_makes_its_result_and_nothing_else(written, trace) -> None:
    made, given = tlmem.compile(written), operands()
    out = made(*given)
    made(*given, out=out)
    with trace() as t:
        made(*given, out=out)
    assert t.rows(driver=True) == []
    with trace() as t:
        made(*given)
    assert t.bytes_of("ALLOC") == 64


def scaled(x, y):
    return (x * y + 1.0) * y


@pytest.mark.parametrize("number", [2.5, 3, True, 1e39, -1e39, float("inf"), 2**70])
def test_a_number_that_is_known_only_then_is_what_python_makes_of_it(number) -> None:
    made, x = tlmem.compile(scaled), tlmem.randn((3, 5), seed=1)
    out = tlmem.empty((3, 5))
    with np.errstate(all="ignore"):
        for value in (number, 0.5, number):
            expected = scaled(x, value)
            assert made(x, value).numpy().tobytes() == expected.numpy().tobytes()
            if expected.dtype == "float32":
                assert made(x, value, out=out).numpy().tobytes() == expected.numpy().tobytes()


@each
def test_a_destination_that_does_not_fit_is_refused_and_not_written(written) -> None:
    made, given = tlmem.compile(written), operands()
    made(*given, out=tlmem.empty((4, 4)))
    gone = tlmem.empty((4, 4))
    gone.free()
    for wrong, error in (
        (tlmem.full((4, 5), 7.0), WrongShape),
        (tlmem.full((4, 4), 7.0, "float64"), WrongDtype),
        (tlmem.full((4, 4), 7.0, device="sim-metal"), tlmem.WrongDevice),
    ):
        with pytest.raises(error):
            made(*given, out=wrong)
        assert np.all(wrong.numpy() == 7)
    with pytest.raises(UseAfterFree):
        made(*given, out=gone)
    with pytest.raises(TypeError, match=r"out must be a tlmem\.Tensor"):
        made(*given, out=np.ones((4, 4), "float32"))


@each
def test_a_destination_that_is_an_argument_or_shares_its_memory_has_the_same_bits(written) -> None:
    made = tlmem.compile(written)
    for at in range(3):
        given = operands()
        expected = written(*given).numpy().tobytes()
        assert made(*given, out=given[at]).numpy().tobytes() == expected
        given = operands()
        given[at] = tlmem.randn((5, 4), seed=9)[1:]
        expected = written(*given).numpy().tobytes()
        assert made(*given, out=given[at]).numpy().tobytes() == expected
        turned = tlmem.empty((4, 4)).T
        given = operands()
        expected = written(*given).numpy().tobytes()
        assert made(*given, out=turned).numpy().tobytes() == expected


@each
def test_a_freed_argument_is_refused_as_by_the_function_itself(written) -> None:
    made, given = tlmem.compile(written), operands()
    made(*given)
    given[0].free()
    errors = []
    for call in (written, made):
        with pytest.raises(UseAfterFree) as caught:
            call(*given)
        errors.append(str(caught.value).partition(" at ")[0])
    assert errors[0] == errors[1]
    given[0] = operands()[0]
    assert made(*given).numpy().tobytes() == written(*given).numpy().tobytes()


def looking(x, w):
    h = x.T @ w[1:3]
    y = h.reshape(2, 8) @ w.reshape(8, 2)
    return tlmem.softmax(y.T, 0) + h[:2, 1:3] * x[:, :2].T


def test_views_of_arguments_and_of_the_frame_are_read_without_an_object(trace) -> None:
    made = tlmem.compile(looking)
    x, w = tlmem.randn((2, 4), seed=1), tlmem.randn((4, 4), seed=2)
    expected = looking(x, w)
    out = tlmem.empty(expected.shape)
    for given in ((x, w), (tlmem.randn((4, 2), seed=3).T, tlmem.randn((5, 4), seed=4)[1:])):
        expected = looking(*given)
        assert made(*given).numpy().tobytes() == expected.numpy().tobytes()
        made(*given, out=out)
        with trace() as t:
            made(*given, out=out)
        assert out.numpy().tobytes() == expected.numpy().tobytes()
        assert t.rows(driver=True) == []
    assert made.compiled.specialisations[-1].plan.seen


def test_a_view_of_a_freed_argument_is_refused() -> None:
    made, x, w = tlmem.compile(looking), tlmem.ones((2, 4)), tlmem.ones((4, 4))
    made(x, w)
    for at in range(2):
        given = [tlmem.ones((2, 4)), tlmem.ones((4, 4))]
        given[at].free()
        with pytest.raises(UseAfterFree):
            made(*given)
    base = tlmem.ones((4, 4))
    part = base[:, :]
    base.free()
    with pytest.raises(UseAfterFree):
        made(x, part)


def test_an_argument_that_gets_another_value_is_seen_as_it_was() -> None:
    def shadowed(x, w):
        part = x[1:]
        x = x * 2
        y = part @ w
        return y + x[:1]

    made, x, w = tlmem.compile(shadowed), tlmem.randn((3, 3), seed=1), tlmem.randn((3, 3), seed=2)
    for _ in range(2):
        assert made(x, w).numpy().tobytes() == shadowed(x, w).numpy().tobytes()


def ops_of_both_kinds(x: tlmem.Tensor) -> tlmem.Tensor:
    y = tlmem.softplus(x) * 2.0
    return y.cumsum(axis=0).softplus()


def test_compiled_functions_compute_softplus_and_cumsum() -> None:
    x = tlmem.randn((4, 6), seed=1)
    made, expected = tlmem.compile(ops_of_both_kinds), ops_of_both_kinds(x)

    assert made(x).numpy().tobytes() == expected.numpy().tobytes()
    out = tlmem.zeros((4, 6))
    assert made(x, out=out) is out
    assert out.numpy().tobytes() == expected.numpy().tobytes()
