"""Views hold the memory they look into; indexing is NumPy's."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tlmem.runtime.errors import UseAfterFree, WrongDevice, WrongDtype, WrongShape
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories, functions, interop, shaping, views


def grid(*shape: int):
    """A tensor of 0, 1, 2, ..., and the array of the same."""
    array = np.arange(float(np.prod(shape))).reshape(shape)
    return factories.tensor(array, dtype="float64"), array


def test_a_view_holds_its_base_by_name_and_has_no_memory_of_its_own(trace) -> None:
    a, _ = grid(3, 4)
    with trace(a=a) as t:
        v = a[1]
        t.name(v=v)
        assert (v.is_view, v.base is a, v.shape, v.tolist()) == (True, True, (4,), [4, 5, 6, 7])
        del v

    assert t.rows() == [
        ("ACQUIRE", "a", "view v", 2),
        ("ALLOC", "v", 0, 1),
        ("REGISTER", "v", "handle", 1),
        ("RELEASE", "v", "handle", 0),
        ("RELEASE", "a", "view v", 1),
        ("FREE", "v", 0, 0),
    ]


def test_a_small_view_keeps_a_big_base_alive(trace) -> None:
    with trace() as t:
        a, _ = grid(100, 100)
        t.name(a=a)
        corner = a[:1, :1]
        handle = a.handle
        del a
        gc.collect()
        assert corner.tolist() == [[0]]
        assert corner.base.handle == handle
        del corner

    assert t.of("a")[-1] == "FREE"


def test_a_view_of_a_view_holds_the_same_base() -> None:
    a, array = grid(4, 4)
    v = a[1:]
    w = v[1:, ::2]
    zero = factories.zeros(1)[:][:]
    handle = v.handle
    del v
    gc.collect()

    assert w.base is a
    assert zero.base.shape == (1,)
    assert w.tolist() == array[1:][1:, ::2].tolist()
    assert [text.startswith("view") for text in a.holders()] == [False, True]
    assert handle not in [int(text.split()[1]) for text in a.holders() if "view" in text]


def test_a_view_outlives_the_scope_only_when_it_escapes_and_then_its_base_does() -> None:
    with scope("s"):
        a, _ = grid(2, 2)
        kept = a[0].escape()
        lost = a[1]

    assert kept.tolist() == [0, 1]
    assert (a.alive, a.count) == (True, 1)
    with pytest.raises(UseAfterFree):
        lost.tolist()
    del kept
    assert not a.alive


def test_writing_through_a_view_is_seen_in_the_base_and_back() -> None:
    a, _ = grid(3, 3)
    v = a[:, 1]
    v[...] = -1
    a[0, 1] = 9

    assert v.tolist() == [9, -1, -1]
    assert a[1].tolist() == [3, -1, 5]


PLAIN = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(2, 0, -1),
    slice(5, 9),
    ...,
    None,
    (0, 1),
    (slice(None), 0),
    (..., 1),
    (None, 0, ..., slice(None, None, 2)),
    (),
    (0, 1, 2),
    np.int64(1),
]


@pytest.mark.parametrize("key", PLAIN, ids=repr)
def test_plain_indexes_give_views_with_the_values_of_numpy(key) -> None:
    a, array = grid(3, 4, 5)
    v = a[key]

    assert v.is_view
    assert v.shape == array[key].shape
    assert v.tolist() == array[key].tolist()
    if v.size:
        assert interop.address_of(v.numpy()) - interop.address_of(a.numpy()) == (
            interop.address_of(np.asarray(array[key])) - interop.address_of(array)
            if isinstance(array[key], np.ndarray)
            else interop.address_of(array[(*key, ...)]) - interop.address_of(array)
        )


@given(st.data())
def test_any_plain_index_gives_what_numpy_gives(data) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    key = data.draw(arrays.basic_indices(shape, allow_newaxis=True))
    a, array = grid(*shape)

    assert np.array_equal(a[key].numpy(), array[key])


CHOSEN = [
    [2, 0],
    [],
    [-1],
    [[0, 1], [2, 2]],
    np.array([1, 1, 1]),
    np.array([0, 2], np.int32),
    [True, False, True],
]


@pytest.mark.parametrize("key", CHOSEN, ids=repr)
def test_lists_of_indexes_give_copies_with_the_values_of_numpy(key) -> None:
    a, array = grid(3, 4)
    chosen = a[key]
    expected = array[np.array(key, np.int64) if isinstance(key, list) and not key else key]

    assert not chosen.is_view
    assert (chosen.shape, chosen.tolist()) == (expected.shape, expected.tolist())


def test_tensors_are_indexes_and_masks() -> None:
    a, array = grid(3, 4)

    assert a[factories.tensor([2, 1], dtype="int64")].tolist() == array[[2, 1]].tolist()
    assert a[a > 5].tolist() == array[array > 5].tolist()
    assert a.T[a.T > 5].tolist() == array.T[array.T > 5].tolist()
    a[a > 5] = 0
    a[factories.tensor([0], dtype="int64")] = 1
    assert a.tolist() == [[1, 1, 1, 1], [4, 5, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    "key, error",
    [
        (3, IndexError),
        (-4, IndexError),
        ((0, 0, 0), IndexError),
        ("x", TypeError),
        (1.0, TypeError),
        ([0.5], TypeError),
        ([3], IndexError),
        ([-4], IndexError),
        (([0], [1]), TypeError),
        ([True, False], WrongShape),
    ],
    ids=repr,
)
def test_indexes_that_do_not_fit_are_refused(key, error) -> None:
    a, _ = grid(3, 4)

    with pytest.raises(error):
        a[key]


def test_take_and_gather_have_the_values_of_numpy() -> None:
    a, array = grid(3, 4, 5)
    places = np.array([[0, -1], [2, 1]])

    for axis in (0, 1, -1):
        expected = np.take(array, places, axis)
        assert views.take(a, places, axis).tolist() == expected.tolist()
        index = np.random.default_rng(axis % 3).integers(-3, 3, array.shape)
        wanted = np.take_along_axis(array, index, axis)
        assert views.gather(a, axis, index).tolist() == wanted.tolist()
        assert a.transpose(2, 0, 1).gather(axis, index.transpose(2, 0, 1)).shape == (5, 3, 4)
    short = factories.tensor([[[1]]], dtype="int64")
    assert a.gather(1, short).tolist() == [[[array[0, 1, 0]]]]


def test_take_and_gather_refuse_what_does_not_fit() -> None:
    a, _ = grid(3, 4)

    with pytest.raises(IndexError, match="index 3 is out of range for an axis of length 3"):
        a.take([3])
    with pytest.raises(IndexError, match="index -5"):
        a.gather(1, [[-5]])
    with pytest.raises(WrongShape, match="no axis 2"):
        a.take([0], axis=2)
    with pytest.raises(WrongDtype, match="a mask goes between brackets"):
        a.take([True])
    with pytest.raises(WrongShape, match="needs an index with the 2 axes"):
        a.gather(0, [0])
    with pytest.raises(WrongShape, match="longer than"):
        a.gather(0, np.zeros((1, 5), np.int64))


def test_a_tensor_of_fractions_as_an_index_is_told_how_to_be_integers() -> None:
    x = factories.ones((3, 2))
    for use in (lambda i: x[i], lambda i: functions.embedding(x, i)):
        with pytest.raises(TypeError, match=r"not float32; tensor\(data, 'int64'\) makes integers"):
            use(factories.ones((2,)))


def test_writing_a_part_broadcasts_converts_and_checks() -> None:
    a, _ = grid(2, 3)
    i = factories.zeros(3, "int64")
    a[0] = 7
    a[:, 1] = factories.tensor([1, 2])
    a[1] = [4, 5, 6]

    assert a.tolist() == [[7, 1, 7], [4, 5, 6]]
    with pytest.raises(WrongShape, match="cannot write to a part"):
        a[0] = [1, 2]
    for wrong in (1.5, factories.ones(3), np.ones(3), 1j, "x"):
        with pytest.raises(WrongDtype, match="does not fit into tensor int64"):
            i[...] = wrong
    i[0] = True
    i[1:] = factories.tensor([True, False], dtype="bool")
    assert i.tolist() == [1, 1, 0]


def test_writing_a_tensor_or_array_is_recorded_as_a_copy(trace) -> None:
    a, _ = grid(2, 3)
    b = factories.ones(3)
    with trace(a=a) as t:
        a[0] = b
        a[1] = np.zeros(3)
        a[1] = 5

    assert [row[:3] for row in t.rows()] == [("COPY", "a", 12), ("COPY", "a", 24)]


def test_tensors_are_iterated_over_along_the_first_axis() -> None:
    a, array = grid(3, 2)

    assert len(a) == 3
    assert [row.tolist() for row in a] == array.tolist()
    for wrong in (len, iter):
        with pytest.raises(TypeError, match="without axes"):
            wrong(a[0, 0])


def test_other_shapes_of_the_same_elements_are_views() -> None:
    a, array = grid(2, 3, 4)

    for v, expected in (
        (a.reshape(6, 4), array.reshape(6, 4)),
        (a.reshape((-1, 2)), array.reshape(-1, 2)),
        (a.flatten(), array.reshape(-1)),
        (a.transpose(), array.transpose()),
        (a.transpose(1, 0, 2), array.transpose(1, 0, 2)),
        (a.T, array.T),
        (a.swapaxes(0, -1), array.swapaxes(0, -1)),
        (a.unsqueeze(1), array[:, None]),
        (a.unsqueeze(-1).squeeze(), array),
        (a[:1].squeeze(0), array[0]),
        (a[:1].broadcast_to(5, 3, 4), np.broadcast_to(array[:1], (5, 3, 4))),
    ):
        assert v.is_view and v.base is a
        assert (v.shape, v.tolist()) == (expected.shape, expected.tolist())
    with pytest.raises(ValueError, match="read-only"):
        a[:1].broadcast_to(5, 3, 4)[0] = 1


def test_reshape_copies_where_a_view_cannot_be_and_records_it(trace) -> None:
    a, array = grid(2, 3)
    with trace(a=a) as t:
        b = a.T.reshape(-1)

    assert not b.is_view
    assert b.tolist() == array.T.reshape(-1).tolist()
    assert t.bytes_of("COPY") == 48


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a.reshape(4),
        lambda a: a.reshape(-1, -1),
        lambda a: a.reshape(-1, 4),
        lambda a: a.reshape(-6),
        lambda a: a.transpose(0),
        lambda a: a.transpose(0, 0),
        lambda a: a.swapaxes(0, 5),
        lambda a: a.squeeze(0),
        lambda a: a.unsqueeze(4),
        lambda a: a.broadcast_to(3, 3),
        lambda a: a.broadcast_to(3),
    ],
)
def test_shapes_that_do_not_fit_are_refused(wrong) -> None:
    a, _ = grid(2, 3)

    with pytest.raises(WrongShape):
        wrong(a)
    with pytest.raises(TypeError, match="a shape consists of integers"):
        shaping.reshape(a, 2.0, 3)


def test_tensors_of_different_devices_are_not_used_together(trace) -> None:
    a = factories.ones(3)
    b = factories.ones(3, device="sim-metal")
    with trace(b=b) as t:
        for wrong in (
            lambda: a + b,
            lambda: a @ b,
            lambda: a.__setitem__(0, b[0]),
            lambda: shaping.concat([a, b]),
            lambda: a.take(factories.zeros(1, "int64", device="sim-metal")),
        ):
            with pytest.raises(WrongDevice, match=r"cpu, sim-metal.*t\.to\('cpu'\)"):
                wrong()

    assert (b.device, b.to("cpu").device) == ("sim-metal", "cpu")
    assert b.to("sim-metal") is b
    assert (a + b.to("cpu")).tolist() == [2, 2, 2]
    assert [what for _, what in t.misuses()] == ["wrong device"] * 5
