"""``out=`` gives the bits that the result has without it, wherever the destination lies."""

import numpy as np
import pytest

from tlmem.runtime.autograd.grad_mode import no_grad
from tlmem.runtime.device import limit_device
from tlmem.runtime.errors import DeviceOutOfMemory, InPlaceOnSaved, NotDifferentiable, UseAfterFree
from tlmem.runtime.tensors import (
    elementwise,
    factories,
    functions,
    interop,
    linalg,
    reductions,
    shaping,
)
from tlmem.runtime.tensors.rows import ALONG, FUNCTION, FUNCTIONS, ROWS
from tlmem.runtime.tensors.tensor import Tensor

ONE = {
    **{
        name: FUNCTIONS[name]
        for name, row in ROWS.items()
        if row.kind == FUNCTION and row.number >= 0
    },
    "clip": lambda a, out=None: elementwise.clip(a, -0.5, 0.5, out=out),
    "power": lambda a, out=None: elementwise.power(a, 3, out=out),
    "root": lambda a, out=None: elementwise.power(a, 0.5, out=out),
    "divide": lambda a, out=None: elementwise.divide(1, a, out=out),
    "add": lambda a, out=None: elementwise.add(a, a, out=out),
    "where": lambda a, out=None: elementwise.where(a > 0, a, 2.0, out=out),
    "maximum": lambda a, out=None: elementwise.maximum(a, 0.25, out=out),
}
REDUCED = {
    name: getattr(reductions, name) for name in ("sum", "mean", "var", "std", "max", "min", "prod")
}
SOFTENED = {name: FUNCTIONS[name] for name, row in ROWS.items() if row.kind == ALONG}
SHAPES = ((4, 4), (7, 33), (3, 5, 17), (129,), (64, 2), (1, 9))
DTYPES = ("float32", "float64")


def given(shape, dtype: str, seed: int = 1) -> Tensor:
    """Random numbers whose sums hang on the order."""
    found = np.exp(np.random.default_rng(seed).standard_normal(shape))
    return factories.tensor(found, dtype)


def laid(shape, dtype: str, how: str) -> Tensor:
    """A destination of a shape, in memory that lies as is said."""
    if how == "dense":
        return factories.full(shape, 7, dtype)
    if how == "apart":
        return factories.full((*shape, 2), 7, dtype)[..., 0]
    if how == "turned":
        return factories.full(shape[::-1], 7, dtype).transpose(tuple(reversed(range(len(shape)))))
    size = int(np.prod(shape, dtype=int))
    return factories.full((size + 1,), 7, dtype)[1:].reshape(shape)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same to the bit."""
    return (one.shape, one.dtype) == (other.shape, other.dtype) and (
        one.numpy().tobytes() == other.numpy().tobytes()
    )


layouts = pytest.mark.parametrize("how", ("dense", "apart", "turned", "shifted"))


@layouts
@pytest.mark.parametrize("name", ONE)
def test_function_of_each_element_has_the_same_bits_in_any_destination(name: str, how: str) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            a = given(shape, dtype)
            out = laid(shape, dtype, how)
            assert ONE[name](a, out=out) is out
            assert same_bits(out, ONE[name](a)), (dtype, shape)


@pytest.mark.filterwarnings("ignore:invalid value")  # the variance of one
@layouts
@pytest.mark.parametrize("name", REDUCED)
def test_reduction_has_the_same_bits_in_any_destination(name: str, how: str) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            for axis in (*range(len(shape)), None):
                a = given(shape, dtype)
                expected = REDUCED[name](a, axis)
                out = laid(expected.shape, dtype, how)
                REDUCED[name](a, axis, out=out)
                assert same_bits(out, expected), (dtype, shape, axis)


@layouts
@pytest.mark.parametrize("name", SOFTENED)
def test_softmax_has_the_same_bits_in_any_destination(name: str, how: str) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            for axis in range(len(shape)):
                a = given(shape, dtype)
                out = laid(shape, dtype, how)
                assert same_bits(SOFTENED[name](a, axis, out=out), SOFTENED[name](a, axis))


@layouts
def test_product_and_join_have_the_same_bits_in_any_destination(how: str) -> None:
    for dtype in DTYPES:
        for left, right in (
            ((4, 7), (7, 5)),
            ((3, 4, 7), (7, 5)),
            ((3, 4, 7), (3, 7, 5)),
            ((7,), (7, 5)),
            ((4, 7), (7,)),
            ((7,), (7,)),
            ((4, 1), (1, 5)),
        ):
            a, b = given(left, dtype), given(right, dtype, 2)
            expected = linalg.matmul(a, b)
            out = laid(expected.shape, dtype, how)
            assert same_bits(linalg.matmul(a, b, out=out), expected), (left, right)
        a = given((4, 7), dtype)
        expected = shaping.concat([a, a], 1)
        out = laid(expected.shape, dtype, how)
        assert same_bits(shaping.concat([a, a], 1, out=out), expected)


def test_destination_that_is_an_operand_or_shares_memory_with_one_has_the_same_bits() -> None:
    for dtype in DTYPES:
        for name, call in ONE.items():
            a = given((9, 33), dtype)
            expected = call(a)
            assert same_bits(call(a, out=a), expected), name
            wide = given((9, 33), dtype)
            expected = call(wide[:, 1:])
            assert same_bits(call(wide[:, 1:], out=wide[:, :-1]), expected), name
        for name, along in SOFTENED.items():
            a = given((9, 33), dtype)
            expected = along(a, 0)
            assert same_bits(along(a, 0, out=a), expected), name
        a = given((9, 9), dtype)
        expected = linalg.matmul(a, a)
        assert same_bits(linalg.matmul(a, a, out=a), expected)
        a = given((9, 9), dtype)
        expected = reductions.sum(a, 0)
        assert same_bits(reductions.sum(a, 0, out=a[3]), expected)
        base = given((4, 6), dtype)
        expected = shaping.concat([base[2:], base[:2]])
        assert same_bits(shaping.concat([base[2:], base[:2]], out=base), expected)


def test_arrays_of_others_that_share_memory_are_seen_to_overlap() -> None:
    memory = np.exp(np.arange(40.0))
    a, out = interop.from_numpy(memory[:36].reshape(6, 6)), interop.from_numpy(memory[4:])
    expected = reductions.softmax(a, 1)
    found = reductions.softmax(a, 1, out=out.reshape((6, 6)))
    assert same_bits(found, expected)


def test_what_a_tape_saved_is_not_written_and_hears_nothing_of_a_refused_write() -> None:
    x = factories.tensor([1.0, 2.0, 3.0]).requires_grad_()
    saved = factories.tensor([4.0, 5.0, 6.0])
    y = (x * saved).sum()
    with pytest.raises(InPlaceOnSaved):
        elementwise.exp(saved, out=saved)
    assert saved.tolist() == [4, 5, 6]
    with no_grad(), pytest.raises(ValueError, match="out is"):
        elementwise.exp(factories.zeros(2), out=saved)
    y.backward()  # it was not written, and so may be read
    assert x.grad.tolist() == [4, 5, 6]


def test_write_to_what_a_tape_saved_without_recording_is_heard_of() -> None:
    x = factories.tensor([1.0, 2.0]).requires_grad_()
    saved = factories.tensor([4.0, 5.0])
    y = (x * saved).sum()
    with no_grad():
        elementwise.exp(saved, out=saved)
    assert same_bits(saved, elementwise.exp(factories.tensor([4.0, 5.0])))
    with pytest.raises(InPlaceOnSaved):
        y.backward()


def test_result_that_needs_a_gradient_leaves_the_destination_unchanged() -> None:
    x, out = factories.ones((2, 3)).requires_grad_(), factories.full((2, 3), 7.0)
    for call in (elementwise.exp, reductions.softmax):
        with pytest.raises(NotDifferentiable):
            call(x, out=out)
    assert out.numpy().tolist() == [[7] * 3] * 2


def test_destination_is_unchanged_when_there_is_no_memory_in_between() -> None:
    calls = (
        lambda a, out: reductions.var(a, 0, out=out[0]),
        lambda a, out: reductions.softmax(out, 1, out=out),
        lambda a, out: linalg.matmul(a[:, ::2], a[::2], out=out),
    )
    with limit_device() as device:
        for call in calls:
            a = factories.ones((8, 8), device=device)
            out = factories.full((8, 8), 7.0, device=device)
            device.fail_nth(1)
            with pytest.raises(DeviceOutOfMemory):
                call(a, out)
            assert np.all(out.numpy() == 7)
            del a, out


def test_freed_operand_or_destination_is_refused_and_told_once(trace) -> None:
    a, gone, out = factories.ones((2, 2)), factories.ones((2, 2)), factories.full((2, 2), 7.0)
    gone.free()
    for call in (
        lambda: elementwise.add(a, gone, out=out),
        lambda: elementwise.add(a, a, out=gone),
        lambda: reductions.softmax(gone, out=out),
    ):
        with trace(gone=gone) as t, pytest.raises(UseAfterFree):
            call()
        assert t.misuses() == [("gone", "use after free")]
    assert np.all(out.numpy() == 7)


def test_index_into_a_table_without_rows_is_out_of_range() -> None:
    table, index = factories.zeros((0, 4)), factories.tensor([1, 0], "int64")
    for call in (
        lambda: functions.embedding(table, index),
        lambda: functions.scatter_add(
            table, 0, factories.zeros((1, 4), "int64"), factories.ones((1, 4))
        ),
    ):
        with pytest.raises(IndexError, match="out of range for an axis of length 0"):
            call()
    assert functions.embedding(table, factories.zeros(0, "int64")).shape == (0, 4)


def test_floating_point_error_comes_when_the_result_is_written() -> None:
    a, out = factories.zeros(2), factories.full(2, 7.0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        elementwise.divide(1, a, out=out)
    assert out.tolist() == [np.inf, np.inf]
