"""Who owns a tensor, from its first event to its last."""

import copy
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from runtime.trace import live_objects, statistics

from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.errors import (
    DoubleFree,
    StillHeld,
    UseAfterFree,
    UseAfterMove,
)
from tlmem.runtime.ownership.holders import move
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.tensors import factories
from tlmem.runtime.tensors.tensor import Tensor


def line() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_outside_a_scope_the_handle_owns_the_tensor_and_frees_it_when_it_dies(trace) -> None:
    with trace() as t:
        a = factories.empty((2, 3))
        t.name(a=a)
        del a

    assert t.rows() == [
        ("ALLOC", "a", 24, 1),
        ("REGISTER", "a", "handle", 1),
        ("RELEASE", "a", "handle", 0),
        ("FREE", "a", 0, 0),
    ]


def test_inside_a_scope_the_scope_owns_the_tensor_and_frees_it_at_exit(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = factories.empty(4)
            t.name(a=a)
            assert a.count == 1
            assert [text.split(" #")[0] for text in a.holders()] == ["scope 's'"]

    assert t.rows("ALLOC", "REGISTER", "RELEASE", "FREE") == [
        ("ALLOC", "a", 16, 1),
        ("REGISTER", "a", "scope s", 1),
        ("RELEASE", "a", "scope s", 0),
        ("FREE", "a", 0, 0),
    ]
    assert not a.alive


def test_a_handle_that_dies_inside_the_scope_leaves_the_tensor_to_the_scope(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = factories.empty(4)
            t.name(a=a)
            handle = a.handle
            del a
            gc.collect()
            assert handle in live_objects()

    assert t.of("a") == ["ALLOC", "REGISTER", "RELEASE", "FREE"]


def test_scope_argument_decides_the_owner_whatever_scope_is_current(trace) -> None:
    with trace() as t:
        with scope("outer") as outer:
            with scope("inner"):
                a = factories.zeros(3, scope=outer)
                b = factories.zeros(3, scope=outer.id)
                t.name(a=a, b=b)
            assert a.alive and b.alive
        assert not a.alive

    assert [row[2] for row in t.rows("REGISTER")] == ["scope outer", "scope outer"]


def test_scope_that_has_ended_takes_nothing_and_nothing_is_left() -> None:
    before = statistics()
    with scope("s") as ended:
        pass
    with pytest.raises(Exception, match="scope") as caught:
        factories.zeros(3, scope=ended.id)

    assert type(caught.value).__name__ == "NotInScope"
    assert statistics().current_count == before.current_count
    with pytest.raises(TypeError, match="a scope is meant by its number"):
        factories.zeros(3, scope="s")


def test_escape_hands_the_count_from_the_scope_to_the_handle_without_changing_it(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = factories.ones(2)
            t.name(a=a)
            assert a.escape() is a
            assert a.escaped
            assert a.escape() is a, "a second time it is the handle's already"
        assert a.tolist() == [1, 1]
        del a

    assert t.rows("REGISTER", "ESCAPE", "ACQUIRE", "RELEASE", "FREE") == [
        ("REGISTER", "a", "scope s", 1),
        ("ESCAPE", "a", "handle", 1),
        ("RELEASE", "a", "handle", 0),
        ("FREE", "a", 0, 0),
    ]


def test_escape_outside_a_scope_does_nothing(trace) -> None:
    a = factories.ones(2)
    with trace(a=a) as t:
        assert a.escape() is a

    assert t.rows() == []
    assert not a.escaped


def test_use_after_the_scope_raises_and_names_every_place(trace) -> None:
    with trace() as t:
        with scope("epoch") as s:
            a = factories.ones((2, 3))
            made = line() - 1
            t.name(a=a)
        left = line() - 4
        with pytest.raises(UseAfterFree) as caught:
            a + 1
        used = line() - 1
    error = caught.value

    assert f"tensor float32[2,3] (object {a.handle}, allocated at {__file__}:{made})" in str(error)
    assert f"at the exit of scope 'epoch' (#{s.id}), left at {__file__}:{left}" in str(error)
    assert f"used at {__file__}:{used}" in str(error)
    assert (error.object, error.allocated) == (a.handle, f"{__file__}:{made}")
    assert error.freed.startswith("at the exit of scope 'epoch'") and "escape" in error.advice
    assert t.misuses() == [("a", "use after free")]


def test_use_after_the_scope_is_explained_when_its_slot_has_a_new_tenant() -> None:
    with scope("epoch"):
        a = factories.ones(3)
    others = [factories.ones(3) for _ in range(64)]
    info = core.ffi.new("tlm_object_info *")
    reused = lib.tlm_object_describe(a.handle, info) != 0

    assert reused, "the slot was not used again; make more"
    with pytest.raises(UseAfterFree, match="at the exit of scope 'epoch'"):
        a.tolist()
    assert len(others) == 64


USES = {
    "arithmetic": lambda a: a + 1,
    "reflected": lambda a: 1 - a,
    "in place": lambda a: a.__iadd__(1),
    "comparison": lambda a: a == 1,
    "reduction": lambda a: a.sum(),
    "softmax": lambda a: a.softmax(),
    "product": lambda a: a @ a,
    "item": lambda a: a[0],
    "write": lambda a: a.__setitem__(0, 1),
    "view": lambda a: a.reshape(3, 1),
    "numpy": lambda a: a.numpy(),
    "buffer": memoryview,
    "dlpack": np.from_dlpack,
    "list": lambda a: a.tolist(),
    "copy": lambda a: a.copy(),
    "to": lambda a: a.to("cpu"),
    "pickle": pickle.dumps,
    "escape": lambda a: a.escape(),
    "as out": lambda a: factories.ones(3) + factories.ones(3) if a is None else a.relu(out=a),
    "index": lambda a: factories.ones(3)[a],
    "operand": lambda a: factories.ones(3) * a,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_every_use_of_a_freed_tensor_raises(use) -> None:
    with scope("s"):
        a = factories.ones(3)

    with pytest.raises(UseAfterFree):
        use(a)


def test_errors_say_in_words_what_could_not_be_done() -> None:
    a = factories.ones(3)
    a.free()

    for use, words in (
        (lambda: a + 1, "cannot add tensor"),
        (lambda: a == 1, "cannot compare tensor"),
        (lambda: a.exp(), "cannot compute exp of tensor"),
        (lambda: a.max(), "cannot compute max of tensor"),
        (lambda: a.copy(), "cannot copy tensor"),
        (lambda: a.numpy(), "cannot lend tensor"),
        (lambda: a.fill(1), "cannot write to tensor"),
        (lambda: a[0], "cannot index tensor"),
    ):
        with pytest.raises(UseAfterFree, match=words):
            use()


def test_text_of_a_freed_tensor_says_so_and_is_no_misuse(trace) -> None:
    with scope("s"):
        a = factories.ones(3)
    b = factories.ones(3)
    b.free()
    with trace(a=a, b=b) as t:
        texts = repr(a), repr(b), str(a), a.alive, a.count, a.holders(), a.shape, a.strides

    assert "freed at the exit of scope 's'" in texts[0] and "freed by free() at" in texts[1]
    assert texts[3:] == (False, 0, [], (3,), (4,))
    assert t.rows() == []


def test_free_gives_the_memory_back_once_whoever_holds_it(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = factories.ones(3)
            t.name(a=a)
            a.free()
            with pytest.raises(DoubleFree, match=r"freed by free\(\) at .*free it once"):
                a.free()

    assert t.of("a") == ["ALLOC", "REGISTER", "FREE", "MISUSE"]
    assert t.misuses() == [("a", "double free")]


def test_free_of_a_tensor_that_its_handle_owns_leaves_the_handle_nothing_to_release(trace) -> None:
    with trace() as t:
        a = factories.ones(3)
        t.name(a=a)
        a.free()
        del a

    assert t.of("a") == ["ALLOC", "REGISTER", "FREE"]


def test_free_is_refused_while_the_memory_is_lent_out() -> None:
    a = factories.ones(3)
    part = a[1:]
    array = part.numpy()

    with pytest.raises(StillHeld, match=r"lent out as export #\d+; drop the array"):
        a.free()
    assert array.tolist() == [1, 1]
    del array
    a.free()
    with pytest.raises(UseAfterFree, match="a view of"):
        part.tolist()


def test_moved_handle_raises_and_the_new_one_has_the_count(trace) -> None:
    with trace() as t:
        a = factories.ones(3)
        t.name(a=a)
        b = move(a)
        assert (b.handle, b.count, b.tolist()) == (a.handle, 1, [1, 1, 1])
        with pytest.raises(UseAfterMove, match="use what move returned"):
            a + 1
        assert "moved at" in repr(a)
        del a
        gc.collect()
        assert b.alive
        del b

    assert t.count("ACQUIRE") == 0
    assert t.counts("a")[-1] == 0


def test_handles_are_never_used_again() -> None:
    seen = set()
    for _ in range(3000):
        a = factories.empty(1)
        assert a.handle not in seen
        seen.add(a.handle)
        del a

    assert len(seen) == 3000


def test_zero_size_tensor_has_an_object_and_no_bytes(trace) -> None:
    with trace() as t:
        a = factories.zeros((0, 3))
        t.name(a=a)
        assert (a.nbytes, a.size, a.tolist(), a.numpy().shape) == (0, 0, [], (0, 3))
        assert (a + 1).shape == (0, 3)
        del a

    assert t.rows("ALLOC")[0] == ("ALLOC", "a", 0, 1)
    assert t.of("a")[-1] == "FREE"


def test_a_tensor_may_die_in_another_thread_than_it_was_made_in(trace) -> None:
    with trace() as t:
        box = [factories.ones(8)]
        t.name(a=box[0])
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()

    assert t.of("a") == ["ALLOC", "REGISTER", "RELEASE", "FREE"]


def test_tensors_in_a_reference_cycle_are_freed_by_the_collector(trace) -> None:
    with trace() as t:
        a = factories.ones(8)
        t.name(a=a)
        ring: list[object] = [a]
        ring.append(ring)
        del ring, a
        gc.collect()

    assert t.of("a") == ["ALLOC", "REGISTER", "RELEASE", "FREE"]


def test_tensor_that_dies_while_an_exception_is_raised_leaves_the_exception_alone() -> None:
    def fail() -> None:
        a = factories.ones(3)
        raise KeyError(a.size)

    with pytest.raises(KeyError, match="3"):
        fail()


def test_counters_of_a_loop_that_ends_in_every_way_are_exact() -> None:
    before = statistics()
    made = 0
    for i in range(60):
        with scope("step"):
            a = factories.ones(4)
            made += 1
            if i % 3 == 0:
                continue
            b = a + i
            made += 1
            if i == 50:
                break
            try:
                made += 1  # c; b + c fails and leaves nothing
                b + factories.ones(5)
            except ValueError:
                pass
    after = statistics()

    assert after.total_count - before.total_count == made
    assert after.freed_count - before.freed_count == made
    assert after.current_bytes == before.current_bytes


def test_copies_are_by_value_and_recorded(trace) -> None:
    a = factories.tensor([[1, 2], [3, 4]])
    with trace(a=a) as t:
        copies = [a.copy(), copy.copy(a), copy.deepcopy([a])[0], +a]
        for each in copies:
            assert each.tolist() == a.tolist() and each.handle != a.handle

    assert t.count("COPY") == 4
    assert t.bytes_of("COPY") == 4 * 16


def test_pickle_is_by_value() -> None:
    for dtype in ("float32", "float64", "int64", "bool"):
        a = factories.tensor([[1, 0], [2, 3]], dtype=dtype).T
        b = pickle.loads(pickle.dumps(a))
        assert (b.shape, b.dtype, b.device, b.tolist()) == (a.shape, dtype, "cpu", a.tolist())
        assert not b.is_view


def test_class_is_not_called() -> None:
    with pytest.raises(TypeError, match=r"made by tlmem.tensor\(data\)"):
        Tensor([1, 2])


def test_operation_that_fails_leaves_nothing() -> None:
    i = factories.tensor([1, 2], dtype="int64")
    f = factories.ones(3)
    t = f == 1
    row = factories.ones(2)
    with scope("s"):
        before = live_objects()
        for fail in (
            lambda: i ** (-1),
            lambda: f @ row,
            lambda: t - t,
            lambda: f + row,
            lambda: f & f,
            lambda: f.reshape(2),
            lambda: f.sum(axis=1),
            lambda: factories.full(3, 1.5, "int64"),
        ):
            with pytest.raises((ValueError, TypeError)):
                fail()

            assert live_objects() == before


EXIT = """
import sys, threading
sys.path.insert(0, {root!r})
import numpy as np
from tlmem.runtime.tensors import factories, interop
from tlmem.runtime.ownership.scope import scope
held = [factories.ones(1000) for _ in range(50)]
held.append(held)
view, array = held[0][3:], held[1].numpy()
adopted = interop.from_numpy(np.ones(100))
class Late:
    def __del__(self): self.tensor.sum().item()
late = Late(); late.tensor = factories.ones(10); late.ring = late
s = scope("open"); s.__enter__(); inside = factories.ones(5); own = interop.from_numpy(np.ones(7))
threading.Thread(target=lambda: [factories.ones(3) for _ in range(100)], daemon=True).start()
print("end")
"""


def test_interpreter_ends_quietly_with_tensors_of_every_kind_alive() -> None:
    root = str(core._OURS.rpartition("tlmem")[0])
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-c", EXIT.format(root=root)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")
