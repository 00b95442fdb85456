"""int32: what makes it, what it gives beside others, where it is an index, what refuses it."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tlmem
from tlmem.compiler.policies import SOUND

VALUES = np.array([[1, -2, 3], [4, 5, -6]], np.int32)
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
INTEGERS = "int32[2, 3]"
BITS = [operator.and_, operator.or_, operator.xor]


def numbers() -> Any:
    return tlmem.tensor(VALUES, None)


def same(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype.name, expected.shape)
    np.testing.assert_array_equal(found.numpy(), expected)


# ---- making ----


@pytest.mark.parametrize(
    "make",
    [
        lambda: tlmem.tensor(VALUES.tolist(), "int32"),
        lambda: tlmem.tensor(VALUES, np.int32),
        lambda: tlmem.tensor(VALUES, None),
        lambda: tlmem.from_numpy(VALUES.copy()),
        lambda: tlmem.from_dlpack(VALUES.copy()),
        lambda: tlmem.tensor(VALUES.astype("int64")).astype(np.dtype("int32")),
        lambda: tlmem.tensor(VALUES.astype("float64"), "float64").astype("int32"),
        lambda: numbers().copy(),
        lambda: copy.deepcopy(numbers()),
        lambda: pickle.loads(pickle.dumps(numbers())),
        lambda: numbers().T.contiguous().T.contiguous(),
    ],
)
def test_each_way_of_making_one_gives_the_same(make: Callable[[], Any]) -> None:
    made = make()
    same(made, VALUES)
    assert made.nbytes == 24
    assert (tlmem.zeros_like(made) + 1).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_ranges_and_constants() -> None:
    same(tlmem.arange(5, dtype="int32"), np.arange(5, dtype=np.int32))
    same(tlmem.arange(9, 2, -3, dtype="int32"), np.arange(9, 2, -3, dtype=np.int32))
    same(tlmem.full((2,), -(2**31), "int32"), np.full(2, -(2**31), np.int32))
    same(tlmem.ones(2, "int32"), np.ones(2, np.int32))
    assert tlmem.empty((3, 5), "int32").nbytes == 60
    assert tlmem.tensor([1, 2]).dtype == "float32"
    assert tlmem.full((1,), 7).dtype == tlmem.arange(3).dtype == "int64"


def test_it_is_lent_without_a_copy() -> None:
    t = numbers()
    view = memoryview(t)
    assert (view.format, view.itemsize, view.shape) == ("i", 4, (2, 3))
    array, other = t.numpy(), np.from_dlpack(t)
    assert array.dtype == other.dtype == np.int32
    array[0, 0] = 77
    assert (t[0, 0].item(), other[0, 0], view[0, 0]) == (77, 77, 77)
    assert np.shares_memory(array, other)


# ---- arithmetic ----


@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARISONS, *BITS])
def test_beside_integers_it_gives_what_numpy_gives(op: Callable[..., Any]) -> None:
    for other in (np.array([[2], [3]], np.int32), np.array([2, 3, 4], np.int64)):
        same(op(numbers(), tlmem.tensor(other, None)), op(VALUES, other))
        same(op(tlmem.tensor(other, None), numbers()), op(other, VALUES))
    same(op(numbers(), 3), op(VALUES, 3))
    same(op(numbers(), True), op(VALUES, True))


@pytest.mark.parametrize(
    ("other", "dtype"),
    [
        (True, "int32"),
        (3, "int32"),
        (2.5, "float32"),
        ("bool", "int32"),
        ("int32", "int32"),
        ("int64", "int64"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_the_higher_dtype_is_that_of_the_result(other: Any, dtype: str) -> None:
    beside = tlmem.ones(3, other) if isinstance(other, str) else other
    t = numbers()
    for result in (
        t + beside,
        beside * t,
        tlmem.maximum(t, beside),
        tlmem.where(t > 0, t, beside),
        tlmem.where(t > 0, beside, t),
    ):
        assert result.dtype == dtype
    assert (t / beside).dtype == ("float64" if dtype == "float64" else "float32")


def test_functions_and_reductions() -> None:
    t = numbers()
    for made, expected in (
        (-t, -VALUES),
        (abs(t), abs(VALUES)),
        (~t, ~VALUES),
        (tlmem.square(t), np.square(VALUES)),
        (tlmem.relu(t), np.maximum(VALUES, 0)),
        (tlmem.clip(t, -1, 2), np.clip(VALUES, -1, 2)),
        (t**2, VALUES**2),
        (t.max(1), VALUES.max(1)),
        (t.min(), VALUES.min()),
        (t.sum(0), VALUES.sum(0)),
        (t.prod(), VALUES.prod()),
        (tlmem.cumsum(t, 1), VALUES.cumsum(1)),
        (t.argmax(1), VALUES.argmax(1)),
        (tlmem.argmin(t), VALUES.argmin()),
        (t.T, VALUES.T),
        (t.reshape(6)[::2], VALUES.reshape(6)[::2]),
        (tlmem.concat([t, t]), np.concatenate([VALUES, VALUES])),
        (tlmem.stack([t, t.astype("int64")]), np.stack([VALUES, VALUES.astype(np.int64)])),
        (t @ t.T, VALUES @ VALUES.T),
        (tlmem.any(t > 4), np.any(VALUES > 4)),
    ):
        same(made, expected)
    assert (t.mean().dtype, t.mean().item()) == ("float32", float(np.float32(VALUES.mean())))
    assert tlmem.exp(t).dtype == tlmem.softmax(t, 1).dtype == "float32"


def test_a_sum_is_wider_than_what_is_added() -> None:
    most = tlmem.full((3,), 2**31 - 1, "int32")
    assert most.sum().item() == 3 * (2**31 - 1)
    assert tlmem.cumsum(most).tolist()[-1] == 3 * (2**31 - 1)
    assert (most + 1).tolist() == [-(2**31)] * 3  # as NumPy


# ---- as an index ----


@pytest.mark.parametrize("places", [[0, 3, -1], [[1, 1], [4, 0]], []])
def test_it_chooses_as_int64_does(places: Any) -> None:
    x = tlmem.randn((5, 4), seed=1)
    narrow, wide = tlmem.tensor(places, "int32"), tlmem.tensor(places, "int64")
    assert tlmem.take(x, narrow).numpy().tobytes() == tlmem.take(x, wide).numpy().tobytes()
    assert x[narrow].shape == x[wide].shape
    same(tlmem.take(x, narrow, 1 if not places else 0), tlmem.take(x, wide, 1 if not places else 0))
    assert tlmem.embedding(x, narrow).numpy().tobytes() == x[wide].numpy().tobytes()


def test_gather_scatter_and_classes() -> None:
    x = tlmem.randn((3, 4), seed=2)
    narrow, wide = (tlmem.tensor([[0, 1, -1, 0]], each) for each in ("int32", "int64"))
    same(tlmem.gather(x, 0, narrow), tlmem.gather(x, 0, wide))
    ones = tlmem.ones((1, 4))
    same(tlmem.scatter_add(x, 0, narrow, ones), tlmem.scatter_add(x, 0, wide, ones))
    classes = tlmem.tensor([0, 3, 1], "int32")
    same(tlmem.cross_entropy(x, classes), tlmem.cross_entropy(x, classes.astype("int64")))
    assert list(range(10))[tlmem.full((), 7, "int32")] == 7
    with pytest.raises(IndexError, match="index 3 is out of range"):
        tlmem.take(x, classes)


def test_gradients_pass_an_int32_index_and_an_int32_factor() -> None:
    w = tlmem.randn((5, 2), seed=1, requires_grad=True)
    chosen = tlmem.take(w, tlmem.tensor([1, 1, 4], "int32"))
    (chosen * tlmem.tensor([[2, 3]], "int32")).sum().backward()
    assert w.grad.tolist() == [[0, 0], [4, 6], [0, 0], [0, 0], [2, 3]]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: numbers().requires_grad_(), tlmem.WrongDtype, "int32.*cannot have a gradient"),
        (lambda: tlmem.zeros(2, "int32", requires_grad=True), tlmem.WrongDtype, "cannot have a gr"),
        (lambda: tlmem.full((2,), 2**31, "int32"), tlmem.SizeOverflow, "fit int32; ask for int64"),
        (lambda: tlmem.arange(0, 2**31 + 1, 2**30, "int32"), tlmem.SizeOverflow, "fit int32"),
        (lambda: tlmem.arange(0, -(2**31) - 9, -(2**30), "int32"), tlmem.SizeOverflow, "int32"),
        (lambda: tlmem.tensor([1, 2**40], "int32"), tlmem.SizeOverflow, "does not fit int32"),
        (lambda: operator.setitem(numbers(), 0, 2**31), tlmem.SizeOverflow, "does not fit int32"),
        (lambda: operator.setitem(numbers(), 0, [1, 2, 2**40]), tlmem.SizeOverflow, "int32"),
        (lambda: operator.setitem(numbers(), 0, 1.5), tlmem.WrongDtype, r"astype\('int32'\)"),
        (lambda: numbers().fill(1.5), tlmem.WrongDtype, "1.5 does not fit"),
        (lambda: numbers() + 2**31, OverflowError, "out of bounds for int32"),
        (lambda: tlmem.randn(2, "int32"), tlmem.WrongDtype, "float32 or float64, not int32"),
        (lambda: tlmem.var(numbers()), tlmem.WrongDtype, "not int32"),
        (lambda: tlmem.embedding(numbers(), [0]), tlmem.WrongDtype, "not int32"),
        (lambda: tlmem.tensor([1], "int16"), tlmem.WrongDtype, "bool, int32, int64, float32"),
        (lambda: tlmem.tensor([2**63]), tlmem.WrongDtype, "does not fit int64"),
    ],
)
def test_what_it_cannot_be_is_refused(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()


def test_a_pool_keeps_it_under_its_own_key() -> None:
    pool = tlmem.TensorPool()
    pool.release(tlmem.zeros((1, 100, 100), "int32"))
    assert "int32:[1,100,100]" in str(pool.stats())
    assert pool.acquire((1, 100, 100), "int64") is None
    found = pool.acquire((1, 100, 100), "int32")
    assert found is not None and found.dtype == "int32"


# ---- compiled ----


def steps(x, i, n):
    y = tlmem.relu(x * 2 - i)
    z = tlmem.where(y > n, y, x)
    total = z.sum(0) + i[0]
    chosen = tlmem.take(z, i[0] - i[0], 0)
    return total, z // 3, chosen, tlmem.argmax(z, 1), tlmem.square(x), z.mean(), z / 2


@pytest.mark.parametrize("policy", SOUND)
def test_a_compiled_function_gives_the_same_dtypes_and_bits(policy: str) -> None:
    made = tlmem.compile(policy=policy)(steps)
    for dtype in ("int32", "int64", "int32"):
        given = numbers(), tlmem.tensor(VALUES, dtype), 2
        for one, other in zip(made(*given), steps(*given), strict=True):
            assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
    made.compiled.clear()


def test_an_annotation_says_int32() -> None:
    @tlmem.compile
    def doubled(x: INTEGERS):
        y = x + 1
        return y * 2

    plan = doubled.compiled.plan()
    assert sorted(each.nbytes for each in plan.plan.placed.values()) == [24]
    same(doubled(numbers()), (VALUES + 1) * 2)
    doubled.compiled.clear()
