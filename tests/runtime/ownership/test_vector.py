"""Vectors that grow: the rules of structs (S8, S16 to S18, S21, S22), whatever the room."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from runtime.trace import Tracer, live_objects

import tlmem
from tlmem.runtime import core
from tlmem.runtime.errors import InArena, UseAfterFree, UseAfterMove
from tlmem.runtime.ownership.vector import FIRST_ROOM


@dataclass
class Layer:
    w: Any
    b: Any


@dataclass
class Empty:
    pass


def fields_of(x: Any) -> int:
    """How many counts fields have of it."""
    return sum(core.holder_text(each).startswith("field") for each in core.holders_of(x.handle))


# ---- growing ----


def test_each_element_is_acquired_once_however_often_the_vector_grows(trace: Tracer) -> None:
    with trace() as t, tlmem.scope("s"):
        layers = [tlmem.ones(2) for _ in range(40)]
        v = tlmem.vec()
        handle = v.handle
        for at, each in enumerate(layers, 1):
            v.push(each)
            assert len(v) == at <= v.capacity
            assert v[at - 1] is each
        assert {fields_of(each) for each in layers} == {1}
        assert [each.count for each in layers] == [2] * 40
        assert v.handle == handle
        assert all(a is b for a, b in zip(v, layers, strict=True))

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    assert t.count("ACQUIRE") + t.count("ALLOC") == t.count("RELEASE")


def test_the_room_doubles_and_the_old_block_goes_at_once() -> None:
    before = live_objects()
    v = tlmem.vec()
    rooms = []
    for _ in range(20):
        v.push(1.0)
        rooms.append(v.capacity)
        assert len(live_objects() - before) == 2  # the vector and its block
    assert sorted(set(rooms)) == [FIRST_ROOM, 2 * FIRST_ROOM, 4 * FIRST_ROOM, 8 * FIRST_ROOM]


def test_a_vector_of_structs_is_freed_depth_first(trace: Tracer) -> None:
    with trace() as t:
        with tlmem.scope("s"):
            v = tlmem.vec()
            for _ in range(2):
                v.push(Layer(tlmem.ones(1), [tlmem.ones(1)]))
            t.name(v=v, s0=v[0], s1=v[1], l0=v[0].b, l1=v[1].b)
            t.name(w0=v[0].w, w1=v[1].w, b0=v[0].b[0], b1=v[1].b[0])
            tlmem.unregister(v)
        assert [each.count for each in (v[0], v[1], v[0].w, v[1].b[0])] == [1, 1, 1, 1]
        with tlmem.scope("t"):
            tlmem.register(v)

    freed = [name for _, name in t.pairs("FREE")]
    assert [n for n in freed if not n.startswith("object")] == [
        *("b1", "l1", "w1", "s1"),
        *("b0", "l0", "w0", "s0"),
        "v",
    ]


def test_a_moved_element_gives_its_count(trace: Tracer) -> None:
    with trace() as t, tlmem.scope("s"):
        v, x = tlmem.vec(), tlmem.ones(2)
        t.name(x=x)
        v.push(tlmem.move(x))
        assert (v[0].count, v[0].holders()[0].split()[0]) == (1, "field")
        with pytest.raises(UseAfterMove):
            x.tolist()

    assert "ACQUIRE" not in t.of("x")


def test_elements_without_memory_and_plain_values_own_nothing() -> None:
    before = live_objects()
    v = tlmem.vec([Empty(), None, 3, "text"])
    made = len(live_objects() - before)
    for _ in range(1000):
        v.push(Empty())
    assert len(live_objects() - before) == made == 2
    assert v[0].handle == 0 and v[2] == 3


# ---- reading and writing ----


def test_an_element_gets_another_value_which_is_taken_first() -> None:
    a, b = tlmem.ones(2), tlmem.ones(2)
    v = tlmem.vec([a])
    v[0] = b
    v[-1] = v[0]
    assert (fields_of(a), fields_of(b)) == (0, 1)
    v[0] = Layer(a, None)
    assert (fields_of(a), fields_of(b)) == (1, 0)
    with pytest.raises(IndexError, match="vector of 1 has no element 1"):
        v[1]
    with pytest.raises(TypeError, match="whole number"):
        v["w"]
    with pytest.raises(AttributeError, match="fields are fixed|no field"):
        v.w = 1


def test_gradients_and_parameters_are_those_of_the_elements() -> None:
    w = tlmem.ones(2, requires_grad=True)
    v = tlmem.vec([Layer(w, 1.0)])
    v.push(w)
    tlmem.sum(v[0].w * v[1]).backward()
    assert v.grad[1].tolist() == v.grad[0].w.tolist() == [2.0, 2.0]
    assert [each is w for each in v.parameters()] == [True]


# ---- taking out ----


@pytest.mark.parametrize("at", [-1, 0, 1])
def test_what_is_popped_belongs_to_the_scope_or_its_handle(at: int) -> None:
    before = live_objects()
    v = tlmem.vec([Layer(tlmem.full((1,), float(n)), None) for n in range(3)])
    expected = range(3)[at]
    with tlmem.scope("s"):
        kept = v.pop(at)
        assert kept.holders()[0].startswith("scope")
        assert kept.w.item() == expected
        assert [each.w.item() for each in v] == [n for n in range(3) if n != expected]
    assert not kept.alive
    last = v.pop()
    v.clear()
    assert (len(v), last.count, last.holders()[0].split()[0]) == (0, 1, "handle")
    del v, last, kept
    gc.collect()
    assert live_objects() == before


def test_what_has_an_owner_keeps_it_when_it_is_popped() -> None:
    x = tlmem.ones(2)
    v = tlmem.vec([x])
    with tlmem.scope("s"):
        y = tlmem.ones(2)
        v.push(y)
        assert v.pop() is y
        assert v.pop() is x
        assert (x.count, y.count) == (1, 1)
    assert x.alive and not y.alive
    with pytest.raises(IndexError):
        v.pop()


# ---- its life ----


def test_escape_move_acquire_and_parameters_take_it_like_a_struct() -> None:
    before = live_objects()
    with tlmem.scope("s"):
        v = tlmem.escape(tlmem.vec([tlmem.ones(2)]))
        other = tlmem.move(tlmem.vec([tlmem.ones(3)]))
        tlmem.register_parameter("vector", tlmem.vec([tlmem.ones(4)]))
    with pytest.raises(UseAfterFree):
        tlmem.acquire(freed_vector())
    v.push(tlmem.ones(1))
    other.push(tlmem.ones(1))
    assert (len(v), len(other), len(tlmem.parameter("vector"))) == (2, 2, 1)
    tlmem.acquire(v, "cache")
    handle = v.handle
    del v
    assert handle in live_objects()
    core.lib.tlm_release(handle, core.holder(core.FOREIGN, core.label("cache")))
    del other
    tlmem.drop_parameter("vector")
    gc.collect()
    assert live_objects() == before


def freed_vector() -> Any:
    v = tlmem.vec([1])
    v.free()
    return v


@pytest.mark.parametrize(
    "use",
    [
        lambda v: v.push(1),
        lambda v: v[0],
        lambda v: v.pop(),
        lambda v: v.clear(),
        lambda v: v.grad,
        lambda v: v.extend([2]),
    ],
)
def test_a_freed_or_moved_vector_says_so(use: Any) -> None:
    with pytest.raises(UseAfterFree, match="vector of 1"):
        use(freed_vector())
    v = tlmem.vec([1])
    kept = tlmem.move(v)
    with pytest.raises(UseAfterMove, match="vector of 1"):
        use(v)
    assert kept.alive


def test_a_vector_cannot_hold_itself() -> None:
    v = tlmem.vec()
    around = tlmem.struct({"v": v})
    for wrong in (v, [v], around, Layer(around, None)):
        with pytest.raises(ValueError, match="into itself"):
            v.push(wrong)
    assert len(v) == 0


def test_a_vector_over_memory_of_an_arena_does_not_leave() -> None:
    with tlmem.scope("s"):
        v = tlmem.vec([tlmem.ones(2)])
        v.push(Layer(None, tlmem.arena_empty(2)))
        with pytest.raises(InArena, match=r"field '1\.b' ends with"):
            tlmem.escape(v)
        v.pop()
        tlmem.escape(v)
    assert v[0].tolist() == [1.0, 1.0]


def test_what_is_refused_changes_nothing() -> None:
    v, dead = tlmem.vec([tlmem.ones(1)]), tlmem.ones(1)
    dead.free()
    counts = [each.count for each in v]
    for wrong in (dead, Layer(tlmem.ones(1), dead), [dead]):
        with pytest.raises(UseAfterFree):
            v.push(wrong)
    assert (len(v), [each.count for each in v]) == (1, counts)
    with pytest.raises(UseAfterFree):
        tlmem.vec([tlmem.ones(1), dead])


def test_random_pushes_and_pops_agree_with_a_list() -> None:
    before = live_objects()
    for seed in range(5):
        r = Random(seed)
        v, model = tlmem.vec(), []
        for _ in range(200):
            how = r.random()
            if how < 0.55 or not model:
                x = tlmem.full((1,), r.random())
                v.push(x if r.random() < 0.5 else tlmem.move(x))
                model.append(v[len(model)].item())
            elif how < 0.8:
                at = r.randrange(-len(model), len(model))
                assert v.pop(at).item() == model.pop(at)
            elif how < 0.98:
                at = r.randrange(len(model))
                v[at] = tlmem.full((1,), r.random())
                model[at] = v[at].item()
            else:
                v.clear()
                model.clear()
            assert [each.item() for each in v] == model
            assert {fields_of(each) for each in v} <= {1}
    del v, x
    gc.collect()
    assert live_objects() == before


@pytest.mark.parametrize("policy", ["default", "v1", "v2", "v3", "v5"])
def test_a_compiled_function_pushes_what_it_makes(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def step(v, x, n):
        for i in range(n):
            y = x * i
            v.push(y)
        return v[0] + v[n - 1]

    v, x = tlmem.vec(), tlmem.ones(2)
    assert step(v, x, 6).tolist() == [5.0, 5.0]
    assert [each.tolist()[0] for each in v] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert {fields_of(each) for each in v} == {1}
    step.compiled.clear()
