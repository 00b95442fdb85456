"""Bugs of the seeds about containers, temporaries and accessors: B8, B15, B16, B17, B21.

docs/bugs.md says what each of them was.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from runtime.exits import each_way_out, recorded
from runtime.things import Mock
from runtime.trace import described, live_objects, statistics

from tlmem.runtime.errors import NotAHolder
from tlmem.runtime.ownership.frame import frame, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release, release_safe
from tlmem.runtime.ownership.parameters import drop_parameter, parameter, register_parameter
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope, unregister
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors import elementwise, factories, reductions, shaping
from tlmem.runtime.tensors.factories import arange, empty, full, ones
from tlmem.runtime.tensors.interop import from_numpy


@dataclass
class Layer:
    weight: Any
    bias: Any


# ---- B8: kinds that recursive free forgot ----


def closed_over():
    kept = ones(2)
    return lambda: kept


PARTS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: ones(2),
    "view": lambda: ones(4)[1:3],
    "view of a view": lambda: ones((4, 4))[1:][:, 2],
    "NumPy's memory": lambda: from_numpy(np.ones(3)),
    "nothing": lambda: None,
    "empty struct": lambda: struct({}),
    "struct": lambda: struct({"a": ones(1)}),
    "list": lambda: [ones(1), ones(2)],
    "tuple of lists": lambda: ([ones(1)], [[ones(1)]]),
    "dict": lambda: {"k": ones(1), 2: {"v": ones(1)}},
    "dataclass": lambda: Layer(ones(1), Layer(ones(2), None)),
    "what a closure returns": lambda: closed_over()(),
    "result of an operation": lambda: ones(2) + ones(2),
    "moved": lambda: move(ones(2)),
    "shared": lambda: [shared := ones(1), shared, {"again": shared}],
}


@each_way_out
@pytest.mark.parametrize("kind", PARTS)
def test_b8_a_container_that_ends_forgets_no_kind_of_part(kind: str, leave, trace) -> None:
    before = live_objects()
    with trace() as t:
        leave(scope("s"), lambda: struct({"x": PARTS[kind](), "deep": [{"y": PARTS[kind]()}]}))
        assert described(live_objects() - before) == []
        whole = struct([PARTS[kind](), Layer(PARTS[kind](), [PARTS[kind]()])])
        del whole
        assert described(live_objects() - before) == []

    assert t.count("ALLOC") == t.count("FREE") > 0
    assert t.misuses() == []
    recorded(trace)


def test_b8_all_kinds_in_one_container_end_with_it_children_first(trace) -> None:
    with trace() as t:
        whole = struct({kind: make() for kind, make in PARTS.items()}, "Whole")
        t.name(whole=whole)
        del whole

    freed = [name for _, name in t.pairs("FREE")]
    assert freed[-1] == "whole"
    assert len(freed) == t.count("ALLOC") > len(PARTS)
    recorded(trace)


# ---- B15: temporaries that nobody named ----

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "scalar - tensor": lambda a: 1.0 - a,
    "scalar / tensor": lambda a: 2.0 / (a + 1.0),
    "int and float": lambda a: 3 + a.astype("int64") * 0.5,
    "chain": lambda a: ((a + 1) * (a - 1) + a * a) / 2,
    "reshape": lambda a: a.reshape(a.size),
    "reshape of a transposed": lambda a: a.transpose().reshape(a.size),
    "comprehension": lambda a: [a[i] * 2 for i in range(3)][-1],
    "if-expression": lambda a: a + 1 if a.sum().item() > 0 else a - 1,
    "comparison": lambda a: (a > 0) == (a < 1),
    "truth of one": lambda a: (a * 2) if bool((a > 0).any()) else a * 3,
    "where": lambda a: elementwise.where(a > 0, a, 0.0),
    "clip": lambda a: elementwise.clip(a, 0.1, 0.9),
    "sum of products": lambda a: (a * a).sum(),
    "mean of integers": lambda a: a.astype("int64").mean(),
    "std": lambda a: a.std(),
    "var along an axis": lambda a: a.var(axis=0),
    "softmax": lambda a: a.softmax(axis=1),
    "log_softmax": lambda a: reductions.log_softmax(a, axis=1),
    "argmax": lambda a: a.argmax(axis=1),
    "product with a transposed": lambda a: a @ a.transpose(),
    "concat": lambda a: shaping.concat([a, a + 1, a[:1]]),
    "stack": lambda a: shaping.stack([a, -a]),
    "broadcast": lambda a: a + ones(a.shape[-1]),
    "mask": lambda a: a[a > 0],
    "rows by index": lambda a: a[[0, 2, 1]],
    "in place": lambda a: a.copy().__iadd__(a * 2),
    "like another": lambda a: factories.zeros_like(a) + factories.ones_like(a),
    "with NumPy": lambda a: a + np.ones(a.shape, np.float32),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_b15_an_expression_leaves_nothing_but_its_result_which_one_owns(name: str, trace) -> None:
    a = arange(12, dtype="float32").reshape(3, 4)
    before = live_objects()
    with trace(a=a) as t:
        result = OPERATIONS[name](a)
        t.name(result=result)
        assert [each for each in live_objects() - before if each != result.handle] == []
        assert len(result.holders()) == 1
        handle = result.handle
        del result
        assert handle not in live_objects()

    assert live_objects() == before
    assert t.count("ALLOC") == t.count("FREE") > 0
    assert t.bytes_of("FREE") == 0
    assert t.misuses() == []
    recorded(trace)


ALONE = (
    "scalar - tensor,reshape,where,clip,std,var along an axis,softmax,log_softmax,argmax,"
    "concat of one,stack of one,rows by index,mean,with NumPy"
).split(",")


@pytest.mark.parametrize(
    "name, dtype",
    [(name, "float32") for name in ALONE]
    + [(name, "int64") for name in ALONE if name not in ("std", "var along an axis")],
)
def test_b15_one_operation_puts_its_result_into_the_scope_and_nothing_else(
    name: str, dtype: str, trace
) -> None:
    more = {
        "where": lambda a: elementwise.where(mask, a, 0.0),
        "concat of one": lambda a: shaping.concat([a]),
        "stack of one": lambda a: shaping.stack([a]),
        "mean": lambda a: a.mean(),
    }
    a = arange(12, dtype=dtype).reshape(4, 3).transpose()
    mask = a > 5
    operation = more.get(name) or OPERATIONS[name]
    with trace() as t:
        with scope("s") as s:
            result = operation(a)
            assert (s.stats().allocations, result.holders()) == (1, [f"scope 's' #{s.id}"])

    assert [row[2] for row in t.rows("REGISTER")].count("scope s") == 1
    recorded(trace)


@each_way_out
def test_b15_a_scope_around_each_step_ends_every_temporary(leave, trace) -> None:
    a = arange(12, dtype="float32").reshape(3, 4)
    before, first = live_objects(), statistics()

    def step() -> None:
        for operation in OPERATIONS.values():
            operation(a)

    with trace():
        for _ in range(3):
            leave(scope("step"), step)
            assert live_objects() == before

    now = statistics()
    made, freed = now.total_bytes - first.total_bytes, now.freed_bytes - first.freed_bytes
    assert made == freed > 0
    recorded(trace)


# ---- B16: returning, overwriting, ending early ----


@each_way_out
def test_b16_a_struct_that_is_returned_again_and_again_keeps_its_counts(leave, trace) -> None:
    with trace() as t:
        with scope("outer"):
            layer = struct(Layer(ones(1), ones(2)))
            t.name(layer=layer, weight=layer.weight)
            unregister(layer)

            def passed_on() -> None:
                unregister(register(layer))

            for _ in range(10):
                leave(scope("callee"), passed_on)
                assert (layer.count, layer.weight.count, layer.bias.count) == (1, 2, 2)
            register(layer)

    assert t.of("weight").count("ACQUIRE") == 1
    assert t.of("layer").count("ACQUIRE") == 0
    assert t.count("ALLOC") == t.count("FREE") == 3
    recorded(trace)


@dataclass
class Net:
    head: Any
    body: Any


def stepped(net):
    """A new value that shares one part with the old one and replaces the other."""
    return {"head": net.head, "body": Layer(net.body.weight + 1, net.body.bias)}


def test_b16_a_field_overwritten_by_its_own_next_value_frees_what_is_not_shared(trace) -> None:
    with trace() as t:
        with scope("s"):
            whole = struct({"net": Net(ones(2), Layer(ones(3), ones(4)))})
            escape(whole)
        t.name(head=whole.net.head, bias=whole.net.body.bias)
        for number in range(5):
            whole.net = stepped(whole.net)
            assert whole.net.head.tolist() == [1.0] * 2
            assert whole.net.body.bias.tolist() == [1.0] * 4
            assert whole.net.body.weight.tolist() == [number + 2.0] * 3
            assert (whole.net.head.count, whole.net.body.bias.count) == (1, 1)
        del whole

    assert (t.of("head").count("FREE"), t.of("bias").count("FREE")) == (1, 1)
    assert t.count("ALLOC") == t.count("FREE")
    recorded(trace)


def test_b16_a_field_is_set_to_itself_without_harm(trace) -> None:
    with trace() as t:
        layer = struct(Layer(ones(2), None))
        before = layer.weight.count
        for _ in range(3):
            layer.weight = layer.weight
        assert layer.weight.count == before
        del layer

    assert t.count("FREE") == t.count("ALLOC")
    recorded(trace)


# ---- B17: what an accessor hands out ----


def borrowed(a, keep) -> dict[str, Callable[[], Any]]:
    """Every way to be handed something that somebody else keeps."""
    layer = struct({"a": a})
    pool = TensorPool()
    keep += [layer, pool]
    register_parameter("borrowed", a)
    return {
        "field": lambda: layer.a,
        "item": lambda: layer["a"],
        "parameter": lambda: parameter("borrowed"),
        "base of a view": lambda: a[1:].base,
        "the same device": lambda: a.to("cpu"),
        "contiguous": lambda: a.contiguous(),
        "register": lambda: register(a),
        "escape": lambda: a.escape(),
        "fill": lambda: a.fill(1.0),
        "view": lambda: a[:1],
        "all of it": lambda: a[:],
        "reshape to the same": lambda: a.reshape(a.shape),
        "iteration": lambda: next(iter(a)),
        "array": lambda: a.numpy(),
        "NumPy and back": lambda: from_numpy(a.numpy()),
    }


def test_b17_dropping_what_an_accessor_handed_out_never_ends_what_it_keeps() -> None:
    a, keep = ones(4), []
    accessors = borrowed(a, keep)
    for name, get in accessors.items():
        before = a.holders()
        handed_out = get()
        del handed_out
        gc.collect()
        assert a.holders() == before, name
        assert a.tolist() == [1.0] * 4, name
    drop_parameter("borrowed")


def test_b17_releasing_what_was_only_borrowed_is_refused(trace) -> None:
    a, keep = ones(4), []
    accessors = borrowed(a, keep)
    with trace(a=a) as t:
        for get in accessors.values():
            handed_out = get()
            if isinstance(handed_out, np.ndarray):
                continue
            with pytest.raises(NotAHolder, match="caller is not one of its holders"):
                release(handed_out, "caller")
            del handed_out
    drop_parameter("borrowed")

    assert {what for _, what in t.misuses()} == {"over release"}
    assert (a.count, a.tolist()) == (2, [1.0] * 4)


# ---- B21: nothing, passed as a value ----

NULL_USES: dict[str, Callable[[Any], Any]] = {
    "register": register,
    "unregister": unregister,
    "promote": promote,
    "escape": escape,
    "acquire": acquire,
    "release": release,
    "release_safe": release_safe,
    "move": move,
    "parameter": lambda null: (register_parameter("null", null), drop_parameter("null")),
}


@pytest.mark.parametrize("use", NULL_USES)
def test_b21_a_struct_without_fields_is_used_without_any_event(use: str, trace) -> None:
    before = live_objects()
    with scope("s") as s, trace() as t:
        for _ in range(3):
            null = struct({})
            assert null.handle == 0
            NULL_USES[use](null)
            del null

    assert t.rows() == []
    assert live_objects() == before
    assert s.stats().allocations == 0


@each_way_out
def test_b21_fields_without_anything_in_them_are_passed_over(leave, trace) -> None:
    with trace() as t:

        def work() -> None:
            outer = struct({"null": struct({}), "a": full(1, 7), "also": [(), {}]})
            t.name(outer=outer, a=outer.a)
            outer.null = struct({})
            assert outer.null.handle == 0
            assert len(outer.also) == 2

        leave(scope("s"), work)

    assert [name for _, name in t.pairs("FREE")][-2:] == ["outer", "a"]
    assert t.count("ALLOC") == t.count("FREE") == 3
    assert t.misuses() == []
    recorded(trace)


def test_b21_a_slot_of_no_bytes_and_a_mock_without_handle_are_no_addresses(trace) -> None:
    with trace() as t:
        with scope("s"), frame(1):
            nothing = get_buffer(0, 0)
            assert nothing.nbytes == 0
            assert empty(0).tolist() == []
            mock = register(Mock(handle=0))

    assert mock.freed == 1
    assert t.count("ALLOC") == t.count("FREE")
    assert t.misuses() == []
