"""What may leave its scope (S39): kinds of objects times kinds of memory times ways out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from runtime.trace import Tracer, live_objects

import tlmem
from tlmem.runtime import core
from tlmem.runtime.errors import InArena, UseAfterFree
from tlmem.runtime.ownership.tensor_scope import TensorScope

SIZE = 6
BEYOND = 1 << 19
"""Floats: more than an arena has room for, so that the memory comes from the heap."""


@dataclass
class Layer:
    w: Any
    b: Any


# ---- memory -> a tensor in it, made in the innermost scope ----


def of_slot(size: int = SIZE) -> Any:
    return tlmem.get_buffer(0, 4 * size).tensor(size)


MEMORY: dict[str, Callable[[], Any]] = {
    "heap": lambda: tlmem.ones(SIZE),
    "arena": lambda: filled(tlmem.arena_empty(SIZE)),
    "arena that is full": lambda: filled(tlmem.arena_empty(BEYOND)),
    "slot": lambda: filled(of_slot()),
    "slot beyond the arena": lambda: filled(of_slot(BEYOND)),
}
LASTING = ("heap", "arena that is full")
"""Memory that does not end with a scope."""


def filled(x: Any) -> Any:
    x.fill(1)
    return x


def grown(x: Any) -> Any:
    """A tensor over a slot that got a larger buffer afterwards."""
    tlmem.get_buffer(0, 8 * SIZE)
    return x


# ---- kind -> an object made of a tensor, and how the tensor is reached from it ----

KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tensor": (lambda x: x, lambda it: it),
    "view": (lambda x: x[1:4], lambda it: it),
    "view of a view": (lambda x: x[1:5][1:], lambda it: it),
    "reshaped": (lambda x: x.reshape(-1, 2), lambda it: it),
    "struct": (lambda x: tlmem.struct(Layer(x, 1.0)), lambda it: it.w),
    "struct of a view": (lambda x: tlmem.struct({"v": x[:2]}), lambda it: it.v),
    "dict, list, struct": (
        lambda x: tlmem.struct({"l": [Layer(None, (1, x))]}),
        lambda it: it.l[0].b[1],
    ),
    "vector": (lambda x: tlmem.struct([tlmem.ones(2), x]), lambda it: it[1]),
    "struct that got it later": (lambda x: later(x), lambda it: it.w),
    "struct that shares it": (lambda x: shared(x)[0], lambda it: it.w),
    "struct in a struct twice": (lambda x: twice(x), lambda it: it.w.w),
}


def later(x: Any) -> Any:
    made = tlmem.struct(Layer(None, None))
    made.w = x
    return made


def shared(x: Any) -> tuple[Any, Any]:
    return tlmem.struct(Layer(x, None)), tlmem.struct(Layer(None, x))


def twice(x: Any) -> Any:
    inner = tlmem.struct(Layer(x, None))
    return tlmem.struct(Layer(inner, inner))


# ---- ways out ----


def by_method(it: Any) -> Any:
    return it.escape()


WAYS: dict[str, Callable[[Any], Any]] = {
    "escape": tlmem.escape,
    "its own escape": by_method,
    "unregister": tlmem.unregister,
    "promote": tlmem.promote,
    "move": tlmem.move,
}


@contextmanager
def a_frame() -> Iterator[None]:
    with tlmem.frame(1, "callee"):
        yield


def handed(it: Any) -> None:
    """Ends a count that floats; what is the handle's ends with it."""
    if core.FLOATING_HOLDER in core.holders_of(it.handle) and not it._holder:
        core.lib.tlm_release(it.handle, core.FLOATING_HOLDER)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", MEMORY)
def test_what_leaves_its_scope_can_be_used_behind_it(memory: str, kind: str, way: str) -> None:
    make, reach = KINDS[kind]
    with a_frame():
        it = make(MEMORY[memory]())
        if memory in LASTING:
            it = WAYS[way](it)
        else:
            with pytest.raises(InArena) as caught:
                WAYS[way](it)
            assert reach(it).tolist()  # nothing happened
    if memory in LASTING:
        assert set(flat(reach(it).tolist())) == {1.0}
        handed(it)
    else:
        assert "ends with" in str(caught.value)
        assert "copy" in caught.value.advice
        with pytest.raises(UseAfterFree):
            reach(it).tolist()


def flat(value: Any) -> Iterator[float]:
    for each in value:
        if isinstance(each, list):
            yield from flat(each)
        else:
            yield each


def test_a_copy_leaves_as_the_error_says() -> None:
    with a_frame():
        x = MEMORY["arena"]()
        layer = tlmem.struct({"deep": [Layer(x, 1.0)]})
        with pytest.raises(InArena, match=r"field 'deep\.0\.w' ends with its frame or scope") as it:
            tlmem.escape(layer)
        assert it.value.advice == "put a copy of field 'deep.0.w' there instead"
        layer.deep[0].w = x.copy()
        tlmem.escape(layer)
    assert layer.deep[0].w.tolist() == [1.0] * SIZE


def test_memory_of_a_scope_further_out_may_be_handed_to_the_caller_but_not_to_a_handle() -> None:
    with tlmem.scope("caller"):
        x = MEMORY["arena"]()
        for leave in (tlmem.promote, tlmem.unregister):
            with a_frame():
                made = tlmem.struct(Layer(x, x[1:]))
                with pytest.raises(InArena):
                    tlmem.escape(made)
                leave(made)
            tlmem.register(made)
            assert made.w.tolist() == [1.0] * SIZE
            assert made.b.tolist() == [1.0] * (SIZE - 1)


def test_a_tensor_over_a_slot_that_grew_does_not_leave_either() -> None:
    with a_frame():
        view = grown(MEMORY["slot"]())
        with pytest.raises(InArena):
            tlmem.escape(view)
        with pytest.raises(InArena):
            tlmem.escape(tlmem.struct([view]))


def test_what_is_refused_is_recorded_as_misuse(trace: Tracer) -> None:
    with trace() as t, a_frame():
        layer = tlmem.struct(Layer(MEMORY["arena"](), None))
        t.name(layer=layer)
        with pytest.raises(InArena):
            tlmem.escape(layer)
    assert t.misuses() == [("layer", "outlives frame")]


def test_release_safe_ends_a_struct_over_memory_of_an_arena() -> None:
    with a_frame():
        x = MEMORY["arena"]()
        layer = tlmem.struct(Layer(x, None))
        tlmem.release_safe(layer)
        assert not layer.alive
        assert x.alive


def test_a_scope_that_is_passed_has_no_arena() -> None:
    with TensorScope("passed") as passed:
        x = tlmem.ones(SIZE, scope=passed)
        with tlmem.scope("s"):
            made = tlmem.escape(tlmem.struct(Layer(x, None)))
        assert made.w.tolist() == [1.0] * SIZE


def test_structs_that_share_their_fields_are_looked_at_once() -> None:
    """2^40 paths lead through 40 structs."""
    before = live_objects()
    with tlmem.scope("s"):
        made = tlmem.struct([tlmem.ones(1), tlmem.ones(1)])
        for _ in range(40):
            made = tlmem.struct([made, made])
        tlmem.escape(made)
    assert made.alive
    del made
    assert live_objects() == before


def test_a_struct_of_many_and_deep_structs_may_leave() -> None:
    with tlmem.scope("s"):
        wide = tlmem.struct([tlmem.ones(1) for _ in range(1000)])
        deep = tlmem.struct([wide])
        for _ in range(2000):
            deep = tlmem.struct([deep])
        tlmem.escape(deep)
    assert deep.alive
