"""Axes may be said in any way that means them, and what is wrong is said in words."""

import numpy as np
import pytest

from tlmem.runtime.errors import WrongShape
from tlmem.runtime.tensors import factories, reductions

VALUES = np.arange(24.0).reshape(2, 3, 4)
RIGHT = (
    None,
    0,
    -1,
    2,
    (),
    (0, 2),
    (-1, 0),
    [0, 1],
    np.int64(1),
    (np.int32(0), 1),
    (0, 1, 2),
)
WRONG = (
    (3, WrongShape, "there is no axis 3"),
    (-4, WrongShape, "there is no axis -4"),
    ((0, 3), WrongShape, "there is no axis 3"),
    ((0, 0), WrongShape, "name the same one twice"),
    ((1, -2), WrongShape, "name the same one twice"),
    (2**70, WrongShape, "there is no axis"),
    (True, TypeError, "an axis is an integer, not True"),
    (1.0, TypeError, r"an axis is an integer, not 1\.0"),
    ("0", TypeError, "an axis is an integer, not '0'"),
)
FUNCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "var": np.var}


def plain(axis: object) -> object:
    """An axis as NumPy takes it."""
    return tuple(axis) if isinstance(axis, list) else axis


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("keepdims", [False, True, 1, 0])
def test_every_way_to_say_axes_means_the_same(name: str, keepdims: object) -> None:
    function = getattr(reductions, name)
    for dtype in ("float32", "float64") if name == "var" else ("float32", "float64", "int64"):
        x = factories.tensor(VALUES, dtype)
        for axis in RIGHT:
            options = {"correction": 0} if name == "var" else {}
            found = function(x, axis, keepdims, **options)
            expected = FUNCTIONS[name](VALUES, axis=plain(axis), keepdims=bool(keepdims))
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [*FUNCTIONS, "softmax", "log_softmax"])
def test_axes_that_are_wrong_are_named(name: str) -> None:
    x = factories.tensor(VALUES)
    for axis, error, message in WRONG:
        with pytest.raises(error, match=message):
            getattr(reductions, name)(x, axis)


def test_softmax_goes_along_an_axis_that_is_said_in_any_way() -> None:
    x = factories.tensor(VALUES)
    powers = np.exp(VALUES - VALUES.max())
    for axis in (-1, 0, 1, np.int64(2), (1,)):
        along = axis[0] if isinstance(axis, tuple) else axis
        expected = powers / powers.sum(along, keepdims=True)
        np.testing.assert_allclose(reductions.softmax(x, axis).numpy(), expected, rtol=1e-5)
