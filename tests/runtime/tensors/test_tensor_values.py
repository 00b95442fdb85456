"""What operations compute, against NumPy as the oracle, and which dtype and shape results have."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tlmem.runtime.dtypes import NAMES, NUMPY, dtype_name
from tlmem.runtime.errors import UseAfterFree, WrongDtype, WrongShape
from tlmem.runtime.tensors import (
    computing,
    elementwise,
    factories,
    interop,
    linalg,
    reductions,
    shaping,
)
from tlmem.runtime.tensors.tensor import Tensor

BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
UNARY = {
    "absolute": np.absolute,
    "negative": np.negative,
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
}
REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
}
RANK = {name: i for i, name in enumerate(("bool", "int32", "int64", "float32", "float64"))}


def higher(left: str, right: str) -> str:
    return left if RANK[left] >= RANK[right] else right


def values(dtype: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (
        random.integers(1, 5, shape).astype(dtype)
        if dtype != "bool"
        else random.random(shape) > 0.5
    )


def same(tensor: Tensor, expected: np.ndarray) -> None:
    """The tensor has the shape and values, as exactly as its dtype can tell them."""
    assert tensor.shape == expected.shape
    tolerance = 1e-5 if tensor.dtype == "float32" else 1e-12
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtypes", list(itertools.product(NAMES, NAMES)), ids="-".join)
def test_two_tensors_give_the_higher_dtype_and_the_values_of_numpy(name, dtypes) -> None:
    left, right = values(dtypes[0], (3, 1)), values(dtypes[1], (4,), 2)
    one, other = interop.from_numpy(left), interop.from_numpy(right)
    function = getattr(elementwise, name)
    if name == "subtract" and dtypes == ("bool", "bool"):
        with pytest.raises(WrongDtype, match="subtract is not for bool"):
            function(one, other)
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        result = function(one, other)
        expected = BINARY[name](left, right)

    same(result, expected)
    dtype = higher(*dtypes)
    if expected.dtype == np.bool_:
        dtype = "bool"
    elif name == "divide":
        dtype = higher(dtype, "float32")
    assert result.dtype == dtype


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", NAMES)
def test_functions_of_one_tensor_have_the_values_of_numpy(name, dtype) -> None:
    source = values(dtype, (2, 3))
    tensor = interop.from_numpy(source)
    if name == "negative" and dtype == "bool":
        with pytest.raises(WrongDtype, match="negative is not for bool"):
            elementwise.negative(tensor)
        return
    with np.errstate(divide="ignore"):
        result = getattr(elementwise, name)(tensor)
        whole = source.astype("int64") if name == "square" and dtype == "bool" else source
        expected = UNARY[name](whole)

    tolerance = 2e-3 if expected.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance)
    if name in ("isnan", "isfinite", "logical_not"):
        assert result.dtype == "bool"
    elif name in ("absolute", "negative"):
        assert result.dtype == dtype
    elif name == "square":
        assert result.dtype == ("int64" if dtype == "bool" else dtype)
    else:
        assert result.dtype == higher(dtype, "float32")


NUMBERS = [
    (True, "bool"),
    (2, "int64"),
    (2.5, "float32"),
    (np.float64(2.5), "float32"),
    (np.True_, "bool"),
]


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("number, kind", NUMBERS, ids=str)
def test_a_number_changes_the_kind_of_a_tensor_but_never_widens_it(dtype, number, kind) -> None:
    tensor = factories.ones(3, dtype)
    wanted = dtype if (dtype, kind) == ("int32", "int64") else higher(dtype, kind)

    for result in (tensor * number, number * tensor):
        assert result.dtype == wanted
        same(result, np.full(3, float(number)))
    assert (tensor == number).dtype == "bool"
    assert (tensor / number).dtype == higher(wanted, "float32")


def test_operators_are_those_of_numpy() -> None:
    left, right = values("float64", (2, 3)), values("float64", (2, 3), 5)
    a, b = interop.from_numpy(left), interop.from_numpy(right)

    for result, expected in (
        (a + b, left + right),
        (a - b, left - right),
        (a * b, left * right),
        (a / b, left / right),
        (a // b, left // right),
        (a % b, left % right),
        (a**b, left**right),
        (2 - a, 2 - left),
        (2 / a, 2 / left),
        (2**a, 2**left),
        (7 // a, 7 // left),
        (7 % a, 7 % left),
        (-a, -left),
        (+a, left),
        (abs(-a), left),
        (a < b, left < right),
        (2 < a, left > 2),
        ((a < b) & (a > 1), (left < right) & (left > 1)),
        ((a < b) | (a > 1), (left < right) | (left > 1)),
        ((a < b) ^ (a > 1), (left < right) ^ (left > 1)),
        (~(a < b), left >= right),
    ):
        same(result, expected)


def test_operators_in_place_keep_the_tensor_and_its_dtype(trace) -> None:
    a = factories.full((2, 2), 6.0)
    handle = a.handle
    with trace(a=a) as t:
        a += 2
        a -= factories.ones(2)
        a *= 3
        a /= 7
        a **= 2
        a //= 2
        a %= 3

    assert a.handle == handle
    assert a.tolist() == [[1, 1], [1, 1]]
    assert t.of("a") == []
    i = factories.ones(2, "int64")
    with pytest.raises(WrongDtype, match=r"out is tensor int64\[2\].*result has dtype float32"):
        i += 0.5
    with pytest.raises(WrongShape):
        i += factories.ones((3, 2), "int64")
    assert i.tolist() == [1, 1]


def test_numbers_and_arrays_of_numpy_are_operands_on_both_sides() -> None:
    a = factories.tensor([1, 2])
    array = np.array([10.0, 20.0])

    for result, expected, dtype in (
        (a + array, [11, 22], "float64"),
        (array + a, [11, 22], "float64"),
        (np.float32(1) + a, [2, 3], "float32"),
        (np.int64(1) - a, [0, -1], "float32"),
        (array > a, [True, True], "bool"),
    ):
        assert isinstance(result, Tensor)
        assert (result.tolist(), result.dtype) == (expected, dtype)
    assert isinstance(np.exp(a), np.ndarray)
    array += a
    assert array.tolist() == [11, 22]


def test_what_is_no_number_is_left_to_python() -> None:
    a = factories.ones(2)

    for wrong in (lambda: a + "x", lambda: [1] * a, lambda: a @ 3, lambda: a < None):
        with pytest.raises(TypeError):
            wrong()
    assert (a == "x") is False
    assert (a != None) is True  # noqa: E711
    with pytest.raises(WrongDtype, match="not a bool, an int or a float"):
        elementwise.add(a, 1j)
    with pytest.raises(TypeError, match=r"needs a tlmem\.Tensor among its operands"):
        elementwise.add(1, 2)
    with pytest.raises(WrongDtype, match="dtype complex128 is not supported"):
        a + np.array([1j, 2])


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()], ids=str)
def test_reductions_have_the_values_of_numpy(name, dtype, axis) -> None:
    source = values(dtype, (2, 3, 4))
    tensor = interop.from_numpy(source)
    for keepdims in (False, True):
        result = getattr(reductions, name)(tensor, axis, keepdims)
        same(result, np.asarray(REDUCTIONS[name](source, axis=axis, keepdims=keepdims)))
        if name in ("any", "all"):
            assert result.dtype == "bool"
        elif name == "mean":
            assert result.dtype == higher(dtype, "float32")
        elif name in ("max", "min"):
            assert result.dtype == dtype
        else:
            assert result.dtype == higher(dtype, "int64")


def test_variance_positions_and_softmax_have_the_values_of_numpy() -> None:
    source = np.random.default_rng(3).normal(size=(4, 5))
    a = interop.from_numpy(source)

    for axis in (None, 0, 1):
        same(a.var(axis), np.asarray(source.var(axis=axis, ddof=1)))
        same(a.std(axis, correction=0), np.asarray(source.std(axis=axis)))
        same(a.argmax(axis), np.asarray(source.argmax(axis=axis)))
        same(a.argmin(axis), np.asarray(source.argmin(axis=axis)))
    powers = np.exp(source - source.max(axis=0))
    same(a.softmax(0), powers / powers.sum(axis=0))
    same(reductions.log_softmax(a, 0), np.log(powers / powers.sum(axis=0)))
    huge = factories.tensor([1e4, -1e4, 0])
    assert huge.softmax().tolist() == [1, 0, 0]
    assert reductions.log_softmax(huge).tolist() == [0, -2e4, -1e4]
    assert elementwise.sigmoid(huge).tolist() == [1, 0, 0.5]


def test_mean_of_integers_comes_from_an_exact_sum() -> None:
    a = factories.full(3, 2**40 + 1, "int64")

    assert a.sum().item() == 3 * 2**40 + 3
    assert a.mean().item() == float(np.float32(2**40 + 1))


def test_temporaries_of_reductions_are_ours_and_freed_at_once(trace) -> None:
    a = factories.ones((8, 8), "int64")
    with trace(a=a) as t:
        b = a.softmax(axis=1)
        c = a.mean()
        t.name(b=b, c=c)

    live = {"b", "c"}
    made = {name for kind, name in t.pairs("ALLOC")}
    assert made - live == {name for kind, name in t.pairs("FREE")} != set()


def test_reductions_of_nothing_say_so() -> None:
    a = factories.zeros((0, 3))

    assert a.sum(0).tolist() == [0, 0, 0]
    assert a.softmax().shape == (0, 3)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(WrongShape, match=f"{name} of nothing"):
            getattr(a, name)(0)
    assert a.max(1).shape == (0,)


def test_axes_that_do_not_exist_are_named() -> None:
    a = factories.zeros((2, 3))

    with pytest.raises(WrongShape, match=r"no axis 2 in shape \[2,3\]; it has axes -2 to 1"):
        a.sum(2)
    with pytest.raises(WrongShape, match="the same one twice"):
        a.sum((0, -2))
    with pytest.raises(TypeError, match="an axis is an integer"):
        a.sum(0.5)
    with pytest.raises(WrongShape, match=r"shapes \[2,3\] and \[4\] cannot be broadcast"):
        a + factories.ones(4)


SHAPES_OF_PRODUCTS = [
    ((2, 3), (3, 4)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((3,), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 2)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize("shapes", SHAPES_OF_PRODUCTS, ids=str)
@pytest.mark.parametrize("dtypes", [("float32",) * 2, ("float64", "int64"), ("int64",) * 2])
def test_products_have_the_values_of_numpy(shapes, dtypes) -> None:
    left, right = values(dtypes[0], shapes[0]), values(dtypes[1], shapes[1], 7)
    result = interop.from_numpy(left) @ interop.from_numpy(right)

    same(result, np.asarray(left @ right))
    assert result.dtype == higher(*dtypes)


def test_products_read_transposed_and_strided_operands() -> None:
    source = values("float32", (6, 8))
    a = interop.from_numpy(source)

    same(a @ a.T, source @ source.T)
    same(a.T[::2] @ a[:, ::2], source.T[::2] @ source[:, ::2])


@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3)), ((), (3,)), ((3,), ()), ((2, 2, 3), (5, 3, 2))]
)
def test_products_that_do_not_fit_are_refused(shapes) -> None:
    with pytest.raises(WrongShape):
        factories.ones(shapes[0]) @ factories.ones(shapes[1])
    with pytest.raises(WrongShape, match="dot needs two vectors"):
        linalg.dot(factories.ones((1, 1)), factories.ones(1))


def test_where_and_clip_choose_without_touching_what_they_read() -> None:
    a = factories.tensor([-2, -1, 0, 1, 2])

    assert elementwise.where(a > 0, a, 0).tolist() == [0, 0, 0, 1, 2]
    assert elementwise.where(a > 0, a, -a, out=a).tolist() == [2, 1, 0, 1, 2]
    b = factories.tensor([-2, 5, 9], dtype="int64")
    assert b.clip(0, 6).tolist() == [0, 5, 6]
    assert b.clip(None, 2.5).dtype == "float32"
    assert b.clip(1, None).tolist() == [1, 5, 9]
    with pytest.raises(ValueError, match="needs a lower limit"):
        b.clip(None, None)
    with pytest.raises(WrongDtype, match="bool tensor as condition"):
        elementwise.where(b, 1, 2)


def test_relu_and_friends_are_methods_too() -> None:
    a = factories.tensor([-1.0, 4.0])

    assert a.relu().tolist() == [0, 4]
    assert a.abs().sqrt().tolist() == [1, 2]
    assert a.exp().log().tolist() == pytest.approx([-1, 4])
    assert a.tanh().tolist() == pytest.approx(np.tanh([-1, 4]))
    assert a.sigmoid().tolist() == pytest.approx(1 / (1 + np.exp([1, -4])))


def test_concat_and_stack_promote_and_check() -> None:
    a, b = factories.ones((1, 2)), factories.zeros((2, 2), "float64")

    joined = shaping.concat([a, b])
    assert (joined.tolist(), joined.dtype) == ([[1, 1], [0, 0], [0, 0]], "float64")
    assert shaping.concat([a, a], axis=-1).shape == (1, 4)
    assert shaping.stack([a, a, a], axis=1).shape == (1, 3, 2)
    assert shaping.stack([a[0], a[0]], axis=-1).shape == (2, 2)
    with pytest.raises(WrongShape, match="cannot be put together along axis 1"):
        shaping.concat([a, b], axis=1)
    with pytest.raises(WrongShape, match="cannot be stacked"):
        shaping.stack([a, b])
    with pytest.raises(ValueError, match="needs one tensor at least"):
        shaping.concat([])
    with pytest.raises(WrongShape):
        shaping.concat([a, a[0]])


SIDES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@given(st.data())
def test_any_two_shapes_broadcast_as_in_numpy_or_are_refused(data) -> None:
    left, right = data.draw(SIDES), data.draw(SIDES)
    one = interop.from_numpy(np.ones(left))
    other = interop.from_numpy(np.full(right, 2.0))
    try:
        expected = np.ones(left) - np.full(right, 2.0)
    except ValueError:
        with pytest.raises(WrongShape):
            one - other
        return

    same(one - other, np.asarray(expected))


def test_dtypes_are_known_by_many_names() -> None:
    for name in NAMES:
        for alias in (name, NUMPY[name], NUMPY[name].type, np.zeros(0, name).dtype):
            assert dtype_name(alias) == name
    assert [dtype_name(kind) for kind in (bool, int, float)] == ["bool", "int64", "float64"]
    assert dtype_name("<f4") == "float32"
    for wrong in ("float16", np.int16, complex, "nonsense", 3, None, [1], ">f4"):
        with pytest.raises(WrongDtype, match="use one of bool, int32, int64, float32, float64"):
            dtype_name(wrong)


def test_rules_of_dtypes_cover_every_function() -> None:
    assert computing.result_dtype(np.power, computing.COUNTING, "bool") == "int64"
    two = factories.tensor([True, False], dtype=None)

    assert (two**2).tolist() == [1, 0]
    assert (two + two).tolist() == [True, False]
    assert (two // two[:1]).dtype == "int64"


def test_a_format_is_that_of_the_one_value() -> None:
    one = factories.tensor([[2.5]])
    assert (f"{one:.3f}", f"{one:>6}", f"{one}") == ("2.500", "   2.5", repr(one))
    assert f"{factories.tensor(7, 'int64'):03d}" == "007"
    with pytest.raises(ValueError, match="has 2 elements, not one"):
        f"{factories.zeros(2):.3f}"
    one.free()
    assert f"{one}" == repr(one)
    with pytest.raises(UseAfterFree):
        f"{one:.3f}"
