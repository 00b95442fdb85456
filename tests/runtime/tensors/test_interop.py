"""Memory is shared with NumPy, DLPack and buffers, both ways: no copy, and nobody dangles."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

from tlmem.runtime import core
from tlmem.runtime.core import ffi, lib
from tlmem.runtime.dtypes import NAMES
from tlmem.runtime.errors import InArena, UseAfterFree, WrongDtype
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories, interop, making

address = interop.address_of


def payload(tensor) -> int:
    """Where the core has the payload."""
    return int(ffi.cast("uintptr_t", lib.tlm_payload(tensor.handle)))


@pytest.mark.parametrize("dtype", NAMES)
def test_numpy_is_the_same_memory_and_can_be_written_to(dtype) -> None:
    a = factories.zeros((2, 3), dtype)
    array = a.numpy()
    array[1, 2] = 1

    assert address(array) == payload(a)
    assert payload(a) % 64 == 0
    assert (array.dtype, array.shape, array.flags.owndata) == (np.dtype(dtype), (2, 3), False)
    assert a[1, 2].item() == 1


def test_an_array_holds_the_tensor_until_the_last_array_is_gone(trace) -> None:
    with trace() as t:
        a = factories.ones(4)
        t.name(a=a)
        array = a.numpy()
        del a
        part = array[1:]
        del array
        gc.collect()
        assert part.tolist() == [1, 1, 1]
        del part

    assert t.rows() == [
        ("ALLOC", "a", 16, 1),
        ("REGISTER", "a", "handle", 1),
        ("ACQUIRE", "a", "export", 2),
        ("RELEASE", "a", "handle", 1),
        ("RELEASE", "a", "export", 0),
        ("FREE", "a", 0, 0),
    ]


def test_memory_stays_under_an_array_when_the_scope_of_its_tensor_ends(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = factories.ones(1000)
            t.name(a=a)
            array = a.numpy()
        assert a.alive and [text.split(" #")[0] for text in a.holders()] == ["export"]
        assert array.sum() == 1000
        del array
        assert not a.alive

    assert t.counts("a") == [1, 1, 2, 1, 0, 0]


def test_an_array_over_a_view_holds_the_view_and_so_its_base() -> None:
    with scope("s"):
        a = factories.arange(12, dtype="float64").reshape(3, 4)
        array = a[1:, ::2].numpy()

    assert array.tolist() == [[4, 6], [8, 10]]
    assert array.strides == (32, 16)


def test_a_reversed_view_is_lent_as_it_is() -> None:
    a = factories.arange(6, dtype="float64")[::-2]

    assert a.numpy().tolist() == [5, 3, 1]
    assert address(a.numpy()) == payload(a) + 40


def test_buffers_are_the_same_memory_with_shape_and_format() -> None:
    a = factories.tensor([[1, 2], [3, 4]])
    memory = memoryview(a)
    memory[0, 1] = 7

    assert (memory.shape, memory.format, memory.readonly) == ((2, 2), "f", False)
    assert a.tolist() == [[1, 7], [3, 4]]
    assert address(np.frombuffer(a, "float32")) == payload(a)
    assert bytes(factories.tensor([1, 0], dtype="bool")) == b"\1\0"
    assert address(np.asarray(a)) == payload(a)
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(a.T[::2], "float32")
    memory.release()
    a.free()


def test_a_buffer_holds_the_tensor() -> None:
    a = factories.ones(3)
    memory = memoryview(a)
    handle = a.handle
    del a
    gc.collect()

    # From 3.12 on Python's own view keeps the tensor, too.
    holders = [core.holder_text(h).split(" #")[0] for h in core.holders_of(handle)]
    assert holders in (["export"], ["handle", "export"])
    assert memory.tolist() == [1, 1, 1]
    memory.release()
    gc.collect()
    assert core.holders_of(handle) == []


def test_asarray_converts_and_copies_as_asked() -> None:
    a = factories.tensor([1, 2])

    assert np.asarray(a, "float64").tolist() == [1, 2]
    assert address(np.array(a)) != payload(a)
    assert a.__array__(copy=True).flags.owndata
    with pytest.raises(ValueError, match="without a copy"):
        a.__array__("float64", copy=False)


@pytest.mark.parametrize("dtype", NAMES)
def test_dlpack_out_is_the_same_memory_and_holds_the_tensor(dtype) -> None:
    a = factories.ones((2, 3), dtype)
    place, handle = payload(a), a.handle
    array = np.from_dlpack(a)
    del a
    gc.collect()

    assert (address(array), array.dtype, array.shape) == (place, np.dtype(dtype), (2, 3))
    assert len(core.holders_of(handle)) == 1
    assert array.sum() == 6
    del array
    gc.collect()
    assert core.holders_of(handle) == []


def test_dlpack_in_is_the_same_memory() -> None:
    array = np.arange(6.0).reshape(2, 3)
    a = interop.from_dlpack(array)
    again = interop.from_dlpack(a)
    a[0, 0] = 9

    assert address(array) == payload(a) == payload(again)
    assert (array[0, 0], again[0, 0].item()) == (9, 9)
    assert a.__dlpack_device__() == (1, 0)
    with pytest.raises((TypeError, AttributeError)):
        interop.from_dlpack([1, 2])


def test_a_capsule_that_nobody_takes_gives_the_tensor_back() -> None:
    a = factories.ones(3)
    capsule = a.__dlpack__()
    assert a.count == 2
    del capsule

    assert a.count == 1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0).reshape(3, 4)[::-1, ::-2],
        np.arange(12)[3:4],
        np.zeros((0, 3)),
        np.float32([[True]]),
        np.array(5.0),
        np.arange(8.0)[::-1].reshape(2, 2, 2).transpose(1, 2, 0),
    ],
    ids=["rows", "transposed", "reversed", "part", "empty", "one", "no axes", "mixed"],
)
def test_from_numpy_is_the_same_memory_whatever_its_order(array) -> None:
    a = interop.from_numpy(array)

    assert (a.shape, a.dtype, a.tolist()) == (array.shape, array.dtype.name, array.tolist())
    assert a.numpy().strides == array.strides
    if array.size:
        assert address(a.numpy()) == address(array)
        a[...] = 3
        assert array.min() == array.max() == 3


def test_from_numpy_keeps_the_array_until_the_tensor_is_freed(trace) -> None:
    class Watched(np.ndarray):
        pass

    array = np.ones(1000).view(Watched)
    gone = weakref.ref(array)
    with trace() as t:
        with scope("s"):
            a = interop.from_numpy(array)
            t.name(a=a)
            b = a[1:]
            del array
            gc.collect()
            assert gone() is not None
            assert b.sum().item() == 999
        assert gone() is None
        with pytest.raises(UseAfterFree):
            a.tolist()

    assert t.rows("ALLOC")[0] == ("ALLOC", "a", 0, 1)


def test_an_array_over_an_adopted_tensor_keeps_the_first_array() -> None:
    array = np.arange(5.0)
    gone = weakref.ref(array)
    again = interop.from_numpy(array).numpy()
    del array
    gc.collect()

    assert gone() is not None
    assert again.tolist() == [0, 1, 2, 3, 4]
    del again
    gc.collect()
    assert gone() is None


def test_read_only_arrays_give_tensors_that_cannot_be_written_to() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    a = interop.from_numpy(array)

    assert not a.numpy().flags.writeable
    assert memoryview(a).readonly
    for write in (lambda: a.__setitem__(0, 2), lambda: a.__iadd__(1), lambda: a[1:].fill(2)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    assert (a + 1).tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", ["float16", "int16", "complex64", ">f4", "U3", "object"])
def test_arrays_of_other_dtypes_are_refused_and_not_kept(dtype) -> None:
    array = np.zeros(3, dtype)
    references = sys.getrefcount(array)

    with pytest.raises(WrongDtype, match="is not supported"):
        interop.from_numpy(array)
    with pytest.raises(TypeError, match="from_numpy needs a NumPy array, not list"):
        interop.from_numpy([1.0])
    assert sys.getrefcount(array) == references


def test_memory_of_the_arena_is_not_lent_because_it_ends_with_its_scope() -> None:
    with scope("s"):
        a = making.arena((4,), "float32")
        a.fill(2)
        for lend in (a.numpy, lambda: memoryview(a), lambda: np.from_dlpack(a), a[1:].numpy):
            with pytest.raises(InArena, match=r"copy it to memory of its own: t\.copy\(\)"):
                lend()
        kept = a.copy().escape()
        assert a.sum().item() == 8

    assert kept.numpy().tolist() == [2, 2, 2, 2]


def test_adopted_memory_is_dropped_from_a_thread_that_python_does_not_know() -> None:
    owner = np.ones(10)
    gone = weakref.ref(owner)
    a = interop.from_numpy(owner)
    handle, holder = a.handle, a._holder
    a._holder = 0
    del owner
    thread = threading.Thread(target=lambda: lib.tlm_release(handle, holder))
    thread.start()
    thread.join()

    assert gone() is None


def test_a_callable_may_be_what_adopted_memory_does_at_its_end(capsys) -> None:
    calls = []
    out = ffi.new("tlm_object *")

    def adopt(function) -> int:
        drop = ffi.addressof(lib, "tlm_python_drop_call")
        kept = lib.tlm_python_keep(id(function))
        assert lib.tlm_object_adopt(core.CPU, ffi.NULL, 0, drop, kept, out) == 0
        return int(out[0])

    first, second = adopt(lambda: calls.append(1)), adopt(lambda: 1 / 0)
    assert lib.tlm_release(first, core.FLOATING_HOLDER) == 0
    unraisable = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        assert lib.tlm_release(second, core.FLOATING_HOLDER) == 0
    finally:
        sys.unraisablehook = hook

    assert calls == [1]
    assert [entry.exc_type for entry in unraisable] == [ZeroDivisionError]
    unraisable.clear()


def test_values_of_one_element_become_python_numbers() -> None:
    one = factories.full((1, 1), 2.5)

    assert (one.item(), float(one), int(one), bool(one)) == (2.5, 2.5, 2, True)
    assert [10, 20, 30][factories.full((), 1)] == 20
    assert not factories.zeros(1)
    for wrong in (bool, float, int):
        with pytest.raises(ValueError, match="2 elements"):
            wrong(factories.ones(2))
    with pytest.raises(TypeError, match="only int32 and int64 can"):
        [1, 2][one]
