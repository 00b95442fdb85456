"""Destination passing (S20): ``out=`` writes into memory of the caller, and does nothing else."""

import numpy as np
import pytest
from runtime.trace import statistics

from tlmem.runtime.errors import UseAfterFree, WrongDevice, WrongDtype, WrongShape
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import (
    elementwise,
    factories,
    interop,
    linalg,
    reductions,
    shaping,
    views,
)
from tlmem.runtime.tensors.tensor import Tensor

A = np.arange(1.0, 13.0, dtype="float32").reshape(3, 4)
INDEX = np.array([[0, 1, 2, 1]])

# name -> (operation on a tensor into out, shape and dtype of the result, needs memory in between)
OPERATIONS = {
    "add": (lambda a, out: elementwise.add(a, a, out=out), (3, 4), "float32", False),
    "add a number": (lambda a, out: elementwise.add(a, 1, out=out), (3, 4), "float32", False),
    "broadcast": (lambda a, out: elementwise.multiply(a, a[0], out=out), (3, 4), "float32", False),
    "compare": (lambda a, out: elementwise.less(a, 3, out=out), (3, 4), "bool", False),
    "exp": (lambda a, out: elementwise.exp(a, out=out), (3, 4), "float32", False),
    "relu": (lambda a, out: a.relu(out=out), (3, 4), "float32", False),
    "sigmoid": (lambda a, out: a.sigmoid(out=out), (3, 4), "float32", False),
    "clip": (lambda a, out: a.clip(2, 5, out=out), (3, 4), "float32", False),
    "where": (lambda a, out: elementwise.where(a > 2, a, 0, out=out), (3, 4), "float32", True),
    "sum": (lambda a, out: a.sum(0, out=out), (4,), "float32", False),
    "sum of all": (lambda a, out: a.sum(out=out), (), "float32", False),
    "mean": (lambda a, out: a.mean(1, True, out=out), (3, 1), "float32", False),
    "max": (lambda a, out: a.max(0, out=out), (4,), "float32", False),
    "any": (lambda a, out: a.any(out=out), (), "bool", False),
    "argmax": (lambda a, out: a.argmax(1, out=out), (3,), "int64", False),
    "var": (lambda a, out: a.var(0, out=out), (4,), "float32", True),
    "std": (lambda a, out: a.std(0, out=out), (4,), "float32", True),
    "softmax": (lambda a, out: a.softmax(1, out=out), (3, 4), "float32", False),
    "log_softmax": (lambda a, out: reductions.log_softmax(a, 1, out=out), (3, 4), "float32", False),
    "matmul": (lambda a, out: linalg.matmul(a, a.T, out=out), (3, 3), "float32", False),
    "dot": (lambda a, out: a[0].dot(a[1], out=out), (), "float32", False),
    "take": (lambda a, out: views.take(a, [2, 0], out=out), (2, 4), "float32", False),
    "gather": (lambda a, out: views.gather(a, 0, INDEX, out=out), (1, 4), "float32", True),
    "concat": (lambda a, out: shaping.concat([a, a], out=out), (6, 4), "float32", False),
    "stack": (lambda a, out: shaping.stack([a, a], 1, out=out), (3, 2, 4), "float32", False),
}
each = pytest.mark.parametrize(
    "operation, shape, dtype, between", OPERATIONS.values(), ids=OPERATIONS.keys()
)


@each
def test_out_is_the_result_with_the_same_values(operation, shape, dtype, between) -> None:
    a = factories.tensor(A)
    out = factories.full(shape, 1, dtype)
    handle, address = out.handle, interop.address_of(out.numpy())
    result = operation(a, out)

    assert result is out
    assert (out.handle, interop.address_of(out.numpy())) == (handle, address)
    assert out.tolist() == operation(a, None).tolist()
    assert (out.shape, out.dtype) == (shape, dtype)


@each
def test_out_costs_no_allocation_no_count_and_no_copy(operation, shape, dtype, between, trace):
    a = factories.tensor(A)
    out = factories.empty(shape, dtype)
    with trace(a=a, out=out) as t:
        operation(a, out)

    assert t.of("out") == []
    assert t.count("COPY") == 0
    if not between:
        assert t.bytes_of("ALLOC") == 0


@each
def test_out_that_does_not_fit_is_refused_and_nothing_is_touched(operation, shape, dtype, between):
    a = factories.tensor(A)
    other = "float64" if dtype != "float64" else "int64"
    freed = factories.zeros(shape, dtype)
    freed.free()
    before = statistics()
    for wrong, error in (
        (factories.full((7, *shape), 1, dtype), WrongShape),
        (factories.full(shape, 1, other), WrongDtype),
        (factories.full(shape, 1, dtype, device="sim-metal"), WrongDevice),
    ):
        with pytest.raises(error, match="out is|different device"):
            operation(a, wrong)
        assert np.all(wrong.numpy() == 1)
    with pytest.raises(UseAfterFree):
        operation(a, freed)
    with pytest.raises(TypeError, match=r"out must be a tlmem\.Tensor, not ndarray"):
        operation(a, np.ones(shape, dtype))
    frozen = np.ones(shape, dtype)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        operation(a, interop.from_numpy(frozen))

    del wrong
    assert statistics().current_count == before.current_count


def test_out_stays_with_its_owner_when_the_callee_fails(trace) -> None:
    def callee(dest: Tensor) -> None:
        elementwise.add(dest, 1, out=dest)
        raise KeyError

    out = factories.zeros(3)
    with trace(out=out) as t:
        with pytest.raises(KeyError), scope("callee"):
            callee(out)

    assert t.of("out") == []
    assert (out.count, out.tolist()) == (1, [1, 1, 1])


def test_chain_through_one_destination_allocates_nothing(trace) -> None:
    w, x = factories.randn((8, 8), seed=1), factories.randn((4, 8), seed=2)
    hidden, out = factories.empty((4, 8)), factories.empty((4, 8))
    expected = np.maximum(x.numpy() @ w.numpy(), 0) + 1
    with trace() as t:
        for _ in range(5):
            linalg.matmul(x, w, out=hidden)
            elementwise.relu(hidden, out=out)
            elementwise.add(out, 1, out=out)

    assert t.rows() == []
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_s20_out_that_lies_over_a_part_of_an_operand_gets_the_same_values() -> None:
    for size in (3, 10, 1000):
        numbers = np.arange(size, dtype="float32")
        for begin, end, into in ((0, -1, slice(1, None)), (1, None, slice(0, -1))):
            a = factories.tensor(numbers)
            elementwise.add(a[begin:end], a[into], out=a[into])
            expected = numbers.copy()
            expected[into] = numbers[begin:end] + numbers[into]
            assert a.tolist() == expected.tolist()


def test_out_may_be_an_operand_or_overlap_one() -> None:
    a = factories.tensor(A)
    elementwise.multiply(a, a, out=a)
    assert a.tolist() == (A * A).tolist()
    elementwise.add(a[:, 1:], a[:, :-1], out=a[:, 1:])
    assert a[0].tolist() == [1, 5, 13, 25]
    a.softmax(out=a)
    assert a.sum(1).tolist() == pytest.approx([1, 1, 1])
