"""New tensors: contents, dtypes, owners, and what is refused."""

import numpy as np
import pytest

from tlmem.runtime.device import device
from tlmem.runtime.errors import NoSuchDevice, SizeOverflow, WrongDtype, WrongShape
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64"])
def test_filled_tensors_have_their_values(dtype) -> None:
    for made, value in (
        (factories.zeros((2, 2), dtype), 0),
        (factories.ones((2, 2), dtype), 1),
        (factories.full((2, 2), 1, dtype), 1),
        (factories.zeros_like(factories.empty((2, 2), dtype)), 0),
        (factories.ones_like(factories.empty((2, 2), dtype)), 1),
    ):
        assert (made.shape, made.dtype) == ((2, 2), dtype)
        assert np.all(made.numpy() == value)


def test_dtypes_are_float32_unless_asked_or_shown() -> None:
    for made in (
        factories.zeros(1),
        factories.ones(1),
        factories.empty(1),
        factories.randn(1),
        factories.tensor([1, 2]),
        factories.tensor(np.ones(2)),
        factories.full(1, 2.0),
        factories.arange(2.0),
    ):
        assert made.dtype == "float32"
    assert factories.full(1, 2).dtype == factories.arange(2).dtype == "int64"
    assert factories.full(1, True).dtype == "bool"
    assert factories.tensor([1, 2], dtype=None).dtype == "int64"
    assert factories.empty_like(factories.ones(1, "int64"), "float64").dtype == "float64"


def test_shapes_are_given_as_integers_or_sequences() -> None:
    for shape, expected in (
        (3, (3,)),
        ([2, 3], (2, 3)),
        ((), ()),
        (np.int64(2), (2,)),
        ((0,), (0,)),
    ):
        assert factories.zeros(shape).shape == expected


@pytest.mark.parametrize("shape", [-1, (2, -3), [-1]])
def test_negative_lengths_are_refused(shape) -> None:
    with pytest.raises(WrongShape, match="no negative lengths"):
        factories.zeros(shape)


@pytest.mark.parametrize("shape", [1.5, "3", (2, None), True, (2, False), {2, 3}])
def test_lengths_that_are_no_integers_are_refused(shape) -> None:
    with pytest.raises(TypeError, match="a shape consists of integers"):
        factories.zeros(shape)


@pytest.mark.parametrize("shape", [2**62, (2**32, 2**32), (2**63, 2), (10**30,), (2**62, 0)])
def test_sizes_that_overflow_are_refused_by_their_name(shape) -> None:
    with pytest.raises(SizeOverflow, match=r"more bytes than any device has"):
        factories.empty(shape, "float64")


def test_arange_counts_as_numpy_does() -> None:
    for arguments in ((5,), (2, 5), (5, 2, -1), (0, 7, 3), (3, 3), (5, 2), (-3, 3, 2)):
        assert factories.arange(*arguments).tolist() == np.arange(*arguments).tolist()
    for arguments in ((0, 1, 0.25), (1.5,), (2, -2, -0.5)):
        made = factories.arange(*arguments, dtype="float64")
        np.testing.assert_allclose(made.numpy(), np.arange(*arguments))
    assert factories.arange(3, dtype="float64").dtype == "float64"
    with pytest.raises(ValueError, match="must not be 0"):
        factories.arange(0, 3, 0)
    with pytest.raises(SizeOverflow, match="has no end"):
        factories.arange(float("inf"))
    with pytest.raises(WrongDtype):
        factories.arange(3, dtype="bool")


def test_arange_of_many_floats_is_exact() -> None:
    made = factories.arange(0, 20_000_001, 1.0)

    assert made[-2].item() == np.float32(19_999_999)


def test_random_numbers_are_the_same_for_the_same_seed() -> None:
    a, b = factories.randn((100, 100), seed=3), factories.randn((100, 100), seed=3)

    assert a.tolist() == b.tolist() != factories.randn((100, 100), seed=4).tolist()
    assert abs(a.mean().item()) < 0.05 and abs(a.std().item() - 1) < 0.05
    assert factories.randn(3, "float64").dtype == "float64"
    with pytest.raises(WrongDtype, match="not int64"):
        factories.randn(3, "int64")


def test_data_of_many_kinds_become_tensors_by_copy(trace) -> None:
    array = np.arange(4).reshape(2, 2)
    with trace() as t:
        for data in (
            [[0, 1], [2, 3]],
            ((0, 1), (2, 3)),
            array,
            array.T.copy().T,
            np.float16(array),
        ):
            made = factories.tensor(data)
            assert made.tolist() == [[0, 1], [2, 3]]
            assert not np.shares_memory(made.numpy(), array)
        assert factories.tensor(made).tolist() == made.tolist()
        assert factories.tensor(3).shape == ()
        assert factories.tensor([]).shape == (0,)

    assert t.count("COPY") == 8


@pytest.mark.parametrize("data, error", [([[1], [2, 3]], WrongShape), ("x", WrongDtype)])
def test_data_that_are_no_numbers_in_rows_are_refused(data, error) -> None:
    with pytest.raises(error):
        factories.tensor(data)
    for wrong in (1j, None, object(), [2**64]):
        with pytest.raises(WrongDtype):
            factories.tensor(wrong, dtype="int64")


def test_values_that_do_not_fit_their_dtype_are_refused() -> None:
    with pytest.raises(WrongDtype, match="1.5 does not fit int64"):
        factories.full(2, 1.5, "int64")
    with pytest.raises(SizeOverflow, match="does not fit int64"):
        factories.full(2, 2**63)
    with pytest.raises(WrongDtype, match="not a bool, an int or a float"):
        factories.full(2, "x")
    with pytest.raises(WrongDtype, match="does not fit tensor int64"):
        factories.ones(2, "int64").fill(0.5)


def test_devices_are_given_by_name_or_as_objects() -> None:
    a = factories.zeros(3, device="sim-metal")

    assert a.device == (a + 1).device == factories.zeros_like(a).device == "sim-metal"
    assert factories.zeros(3, device=device("sim-metal")).device == "sim-metal"
    assert factories.zeros_like(a, device="cpu").device == "cpu"
    for wrong in ("gpu", 99, 3.5):
        with pytest.raises(NoSuchDevice, match=r"tlmem\.devices\(\) lists them"):
            factories.zeros(3, device=wrong)
    if not device("metal").available:
        with pytest.raises(NoSuchDevice, match="'metal' is not available here: "):
            factories.zeros(3, device="metal")


@pytest.mark.parametrize(
    "make, expected",
    [
        (factories.zeros, [0, 0, 0]),
        (factories.ones, [1, 1, 1]),
        (lambda shape, pool: factories.full(shape, 2.0, pool=pool), [2, 2, 2]),
        (lambda shape, pool: factories.tensor([4, 5, 6], pool=pool), [4, 5, 6]),
        (lambda shape, pool: factories.arange(3, dtype="float32", pool=pool), [0, 1, 2]),
    ],
    ids=["zeros", "ones", "full", "tensor", "arange"],
)
def test_a_tensor_from_a_pool_is_the_pooled_one_with_fresh_contents(make, expected, trace) -> None:
    pool = TensorPool()
    stale = factories.full(3, 9.0)
    stale_id = id(stale)
    pool.release(stale)
    del stale
    with trace() as t:
        hit = make((3,), pool=pool)
        miss = make((3,), pool=pool)

    assert (id(hit), hit.tolist()) == (stale_id, expected)
    assert id(miss) != stale_id and miss.tolist() == expected
    assert (t.count("POOL_HIT"), t.count("POOL_MISS")) >= (1, 1)
    assert len([row for row in t.rows("ALLOC") if row[2]]) == 1
    pool.clear()


def test_a_pooled_tensor_goes_to_the_scope_that_is_named() -> None:
    pool = TensorPool()
    with scope("outer") as outer:
        for current in (False, True):
            pool.release(factories.ones(3))
            if current:
                with scope("inner"):
                    a = factories.zeros(3, scope=outer, pool=pool)
            else:
                a = factories.zeros(3, scope=outer, pool=pool)
            assert [text.split(" #")[0] for text in a.holders()] == ["scope 'outer'"]
            a.free()
    pool.clear()


def test_a_pool_of_another_device_is_a_miss() -> None:
    pool = TensorPool()
    pool.release(factories.ones(3))

    assert factories.zeros(3, device="sim-metal", pool=pool).device == "sim-metal"
    assert len(pool) == 1
    pool.clear()
