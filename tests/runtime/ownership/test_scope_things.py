"""Things that tlmem did not make, in scopes: the scopes' half of S53."""

import gc
import weakref

import pytest
from runtime.things import Bare, Mock
from runtime.trace import live_objects

from tlmem.runtime.errors import NotRegistered
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import (
    ScopedTensor,
    escape,
    promote,
    register,
    scope,
    scope_depth,
    scope_tensor_count,
    unregister,
)
from tlmem.runtime.tensors.factories import empty


def test_a_plain_object_with_three_attributes_is_a_scoped_tensor() -> None:
    assert isinstance(Mock(), ScopedTensor)
    assert isinstance(empty(1), ScopedTensor)


@pytest.mark.parametrize("handle", [4096, 0, -1, None, "text", b"bytes"])
def test_a_handle_of_others_is_a_key_and_free_is_called_once(handle) -> None:
    with scope("s"):
        mock = Mock(handle)
        assert register(mock) is mock
        register(mock)
        assert scope_tensor_count() == 1

    assert mock.freed == 1


def test_a_thing_without_free_is_only_let_go() -> None:
    with scope("s"):
        bare = register(Bare())
        assert scope_tensor_count() == 1

    assert not bare.escaped


def test_things_and_tensors_are_freed_in_one_order_last_in_first_out() -> None:
    order = []

    class Told(Mock):
        def free(self) -> None:
            order.append((self.handle, tensor.alive))

    with scope("s"):
        register(Told("first"))
        tensor = empty(1)
        register(Told("last"))

    assert order == [("last", True), ("first", False)]


def test_an_escaped_thing_is_marked_and_not_freed(trace) -> None:
    with trace() as t:
        with scope("s") as s:
            mock = register(Mock())
            assert escape(mock) is mock
            assert mock.escaped
            assert s.count == 1
        assert mock.freed == 0
        del mock

    assert [kind for kind, _ in t.pairs()] == [
        *("SCOPE_ENTER", "ALLOC", "REGISTER", "ESCAPE", "SCOPE_EXIT", "RELEASE", "FREE"),
    ]


def test_s53_a_thing_that_no_scope_has_is_marked_when_it_escapes() -> None:
    with scope("s") as s:
        mock = Mock()
        assert escape(mock) is mock

    assert (mock.escaped, mock.freed, s.count) == (True, 0, 0)


def test_s53_a_thing_leaves_its_scope_when_it_goes_into_a_pool() -> None:
    class Both(Mock):
        shape, dtype = (2,), "float32"

    pool = TensorPool()
    with scope("s"):
        thing = register(Both())
        pool.release(thing)
    assert thing.freed == 0

    assert pool.acquire((2,)) is thing


def test_an_escaped_thing_without_weak_references_is_let_go_at_once() -> None:
    before = live_objects()
    with scope("s"):
        bare = escape(register(Bare()))
        assert live_objects() == before
    assert bare.escaped


def test_a_thing_that_marks_itself_escaped_is_not_freed() -> None:
    with scope("s"):
        mock = register(Mock())
        mock.mark_escaped()

    assert mock.freed == 0


def test_a_scope_keeps_a_registered_thing_alive_until_its_end() -> None:
    with scope("s"):
        mock = register(Mock())
        seen = weakref.ref(mock)
        del mock
        gc.collect()
        assert seen() is not None

    assert seen() is None


def test_an_unregistered_thing_is_the_programs_and_a_promoted_one_waits_to_be_taken() -> None:
    with scope("outer"):
        with scope("inner"):
            mine = unregister(register(Mock()))
            passed = promote(register(Mock()))
        assert (mine.freed, passed.freed) == (0, 0)
        register(passed)

    assert (mine.freed, passed.freed) == (0, 1)


def test_what_cannot_be_owned_is_refused_by_name() -> None:
    with scope("s"), pytest.raises(TypeError, match="int.*mark_escaped"):
        register(3)
    with pytest.raises(NotRegistered, match="no scope has it"):
        unregister(Mock())


def test_an_error_of_free_is_raised_after_the_scope_has_ended() -> None:
    with pytest.raises(OSError, match="mine"):
        with scope("s"):
            a = empty(1)
            register(Mock(error=OSError("mine")))

    assert not a.alive
    assert scope_depth() == 0


def test_several_errors_of_free_are_a_group_and_all_things_are_freed() -> None:
    with pytest.raises(ExceptionGroup, match="2 exceptions") as caught:
        with scope("s"):
            mocks = [register(Mock(error=OSError(text))) for text in ("a", "b")]
            mocks.append(register(Mock()))

    assert [str(error) for error in caught.value.exceptions] == ["b", "a"]
    assert [mock.freed for mock in mocks] == [1, 1, 1]


def test_an_error_of_the_block_passes_through_with_errors_of_free_as_notes() -> None:
    with pytest.raises(KeyError) as caught, scope("s"):
        register(Mock(error=OSError("of free")))
        raise KeyError

    assert "of free" in caught.value.__notes__[0]
