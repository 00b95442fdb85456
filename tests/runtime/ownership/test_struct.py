"""Structs: S5, S6, S8, S9, S16 to S18, S21, S22, and the bugs they invite: B6, B8, B16, B21."""

import copy
from dataclasses import dataclass, field

import pytest
from runtime.trace import live_objects, statistics

from tlmem.runtime.errors import DoubleFree, UseAfterFree, UseAfterMove
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.scope import escape, register, scope, unregister
from tlmem.runtime.ownership.struct import Struct, struct
from tlmem.runtime.tensors.factories import empty, ones
from tlmem.runtime.tensors.tensor import Tensor


@dataclass
class Layer:
    weight: Tensor
    bias: Tensor
    units: int = 3


@dataclass
class Nothing:
    pass


@dataclass
class Net:
    layers: list[Layer]
    named: dict[str, Tensor] = field(default_factory=dict)


# ---- S16, S17: init retains, the scope releases its own ----


def test_init_acquires_each_field_by_name_and_the_scopes_exit_leaves_the_fields_count(
    trace,
) -> None:
    with trace() as t:
        with scope("outer"):
            with scope("inner"):
                a, b = empty(1), empty(2)
                layer = struct(Layer(a, b))
                t.name(a=a, b=b, layer=layer)
                assert (a.count, b.count, layer.count) == (2, 2, 1)
                unregister(layer)
            assert (a.count, b.count, layer.count) == (1, 1, 1)
            assert [text.split(" #")[0] for text in a.holders()] == ["field"]
            register(layer)

    assert t.counts("a") == [1, 1, 2, 1, 0, 0]
    assert t.rows("HOLDERS") == [("HOLDERS", "layer", t.rows("HOLDERS")[0][2], 3)]
    assert t.rows("ACQUIRE") == [("ACQUIRE", "a", "field", 2), ("ACQUIRE", "b", "field", 2)]
    assert t.pairs("FREE") == [("FREE", "b"), ("FREE", "a"), ("FREE", "layer")]


def test_outside_a_scope_the_struct_lives_as_long_as_its_variable() -> None:
    before = live_objects()
    layer = struct(Layer(empty(1), empty(2)))

    assert [text.split(" #")[0] for text in layer.holders()] == ["handle"]
    del layer
    assert live_objects() == before


# ---- S8: recursive release ----


def make_net() -> Net:
    return Net([Layer(empty(1), empty(2)), Layer(empty(3), empty(4))], {"head": empty(5)})


def test_a_struct_in_a_list_in_a_struct_is_freed_depth_first_children_before_parents(trace) -> None:
    with trace() as t:
        with scope("s"):
            given = make_net()
            net = unregister(struct(given))
            t.name(net=net, layers=net.layers, l0=net.layers[0], l1=net.layers[1], named=net.named)
            t.name(head=given.named["head"])
            for index, layer in enumerate(given.layers):
                t.name(**{f"w{index}": layer.weight, f"b{index}": layer.bias})
        with scope("t"):
            register(net)

    assert [name for _, name in t.pairs("FREE")] == [
        *("head", "named"),
        *("b1", "w1", "l1"),
        *("b0", "w0", "l0"),
        *("layers", "net"),
    ]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: {"a": x},
        lambda x: [x],
        lambda x: (x, 1),
        lambda x: Layer(x, x),
        lambda x: {"a": [{"b": (x, Layer(x, None))}]},
        lambda x: Net([], {"x": x}),
        lambda x: {1: x, (2, 3): x},
    ],
)
def test_no_kind_of_container_forgets_a_field(wrap) -> None:
    """B8: recursive free knew some kinds of fields and forgot others."""
    before, first = live_objects(), statistics()
    with scope("s"):
        a = empty(1)
        assert a.count == 1
        struct(wrap(a))
        assert a.count > 1

    now = statistics()
    assert live_objects() == before
    assert now.acquires - first.acquires == now.releases - first.releases - (
        now.freed_count - first.freed_count
    )


def test_a_shared_field_only_loses_one_count() -> None:
    shared = ones(2)
    one, other = struct({"x": shared}), struct([shared])
    assert shared.count == 3

    del one
    assert shared.count == 2
    del other
    assert (shared.count, shared.tolist()) == (1, [1.0, 1.0])


def test_s8_a_view_that_only_a_field_holds_lets_go_of_its_base_with_the_struct() -> None:
    base = ones((2, 2))
    held = struct({"row": move(base[0])})
    assert base.count == 2

    del held
    assert base.count == 1


def test_a_container_that_occurs_twice_is_one_struct_that_both_fields_hold() -> None:
    inner = {"x": empty(1)}
    outer = struct([inner, inner])

    assert outer[0] is outer[1]
    assert outer[0].count == 2


# ---- S9, S18: pass and return ----


def test_passing_a_struct_and_reading_its_fields_is_no_event(trace) -> None:
    def callee(layer: Struct) -> Tensor:
        return layer.weight

    a = empty(1)
    layer = struct(Layer(a, empty(1)))
    with trace() as t:
        assert callee(layer) is a
        assert callee(layer) is layer["weight"]

    assert t.rows() == []


def test_returning_a_struct_unregisters_the_container_only(trace) -> None:
    def build() -> Struct:
        with scope("callee"):
            a = empty(1)
            layer = struct({"a": a}, "Layer")
            t.name(a=a, layer=layer)
            return unregister(layer)

    with trace() as t:
        with scope("caller"):
            layer = register(build())
            assert (layer.count, layer.a.count) == (1, 1)

    assert t.rows("UNREGISTER") == [("UNREGISTER", "layer", "scope callee", 1)]
    assert t.counts("a") == [1, 1, 2, 1, 0, 0]
    assert t.of("layer").count("ACQUIRE") == 0


def test_returning_again_and_again_never_grows_a_count() -> None:
    """B16: each return acquired the fields once more."""

    def passed_on(layer: Struct) -> Struct:
        with scope("callee"):
            return unregister(register(layer))

    with scope("outer"):
        layer = unregister(struct(Layer(empty(1), empty(1))))
        for _ in range(20):
            layer = passed_on(layer)
            assert (layer.count, layer.weight.count) == (1, 2)
        register(layer)


# ---- S5, S6: sharing, overwriting, shadowing ----


def test_sharing_a_value_is_one_more_count_until_its_holder_ends(trace) -> None:
    with trace() as t:
        with scope("outer"):
            y = empty(1)
            t.name(y=y)
            x = acquire(y, "x")
            assert x is y
            release(x, "x")

    assert t.counts("y") == [1, 1, 2, 1, 0, 0]


def test_s5_one_name_may_share_a_value_twice_and_lets_go_as_often() -> None:
    a = ones(2)
    acquire(a, "y")
    acquire(a, "y")
    assert (a.count, a.holders()[1:]) == (3, ["y", "y"])

    release(a, "y")
    assert (a.count, a.holders()[1:]) == (2, ["y"])
    release(a, "y")
    assert a.count == 1


def test_overwriting_a_field_takes_the_new_value_before_it_drops_the_old(trace) -> None:
    with trace() as t:
        layer = struct({"x": empty(1)})
        new = empty(1)
        t.name(old=layer.x, new=new, layer=layer)
        layer.x = new
        assert layer.x is new
        t.name()

    changes = t.rows("ACQUIRE", "RELEASE", "FREE")
    assert changes == [
        ("ACQUIRE", "old", "field", 2),
        ("ACQUIRE", "new", "field", 2),
        ("RELEASE", "old", "field", 1),
        ("RELEASE", "old", "handle", 0),
        ("FREE", "old", 0, 0),
    ]


def test_assigning_a_field_to_itself_is_harmless() -> None:
    with scope("s"):
        layer = struct({"x": ones(2)})
        escape(layer)
    for _ in range(5):
        layer.x = layer.x

    assert (layer.x.count, layer.x.tolist()) == (1, [1.0, 1.0])


def test_replacing_a_struct_by_one_made_of_its_own_parts_frees_neither_early() -> None:
    """B16: ``s.f = s.f.step()`` freed what the new value shared with the old one."""
    net = struct({"layer": Layer(ones(2), ones(3))})
    for _ in range(5):
        net.layer = {"weight": net.layer.weight, "bias": ones(3)}

    assert net.layer.weight.tolist() == [1.0, 1.0]
    assert net.layer.weight.count == 1 + (net.layer.weight._holder != 0)


def test_shadowing_a_variable_frees_the_old_value_at_once_outside_scopes(trace) -> None:
    with trace() as t:
        x = empty(1)
        t.name(a=x)
        x = empty(1)
        t.name(b=x)
        x = x
        del x

    assert t.pairs("ALLOC", "FREE") == [
        ("ALLOC", "a"),
        ("ALLOC", "b"),
        ("FREE", "a"),
        ("FREE", "b"),
    ]


def test_a_field_is_emptied_by_none_and_filled_by_a_container() -> None:
    with scope("s"):
        layer = struct({"x": None})
        layer.x = {"y": empty(1)}
        inner, a = layer.x, layer.x.y
        assert (inner.count, a.count) == (1, 2)
        layer.x = None
        assert (layer.x, inner.alive, a.count) == (None, False, 1)


# ---- S21: move ----


def test_a_move_into_a_field_is_one_acquire_and_one_release_fewer_than_a_copy(trace) -> None:
    with trace() as copied, scope("s"):
        a = empty(1)
        copied.name(a=a)
        escape(struct({"x": a}))
    with trace() as moved, scope("s"):
        b = empty(1)
        moved.name(a=b)
        escape(struct({"x": move(b)}))

    assert copied.of("a")[1:] == ["REGISTER", "ACQUIRE", "RELEASE", "RELEASE", "FREE"]
    assert moved.of("a")[1:] == ["REGISTER", "UNREGISTER", "REGISTER", "RELEASE", "FREE"]


@pytest.mark.parametrize("inside", [True, False])
def test_using_a_name_after_its_move_raises_and_the_new_one_works(inside: bool) -> None:
    def body() -> None:
        a = ones(2)
        b = move(a)
        assert b.handle == a.handle
        assert b.tolist() == [1.0, 1.0]
        for use in (Tensor.tolist, move, lambda x: x + 1, lambda x: struct([x])):
            with pytest.raises(UseAfterMove, match="moved"):
                use(a)
        del a
        assert b.count == 1

    if inside:
        with scope("s"):
            body()
    else:
        body()


def test_a_moved_struct_leaves_the_scope_with_its_new_name() -> None:
    with scope("s"):
        layer = struct(Layer(empty(1), empty(1)))
        moved = move(layer)
        with pytest.raises(UseAfterMove):
            _ = layer.weight
        outer = struct({"layer": moved})
        assert (moved.count, outer.layer is moved) == (1, True)


def test_s21_a_handle_moves_its_own_count_and_not_that_of_the_scope() -> None:
    x = ones(2, requires_grad=True)
    with scope("s") as s:
        gradient = ones(2)
        x.grad = gradient
        named = x.grad  # a handle of its own
        assert named.count == 3
        moved = move(named)
        assert (s.stats().escaped, moved.count) == (0, 3)
        assert [text.split(" #")[0] for text in moved.holders()].count("handle") == 0
        del moved, named
        assert gradient.count == 2

    x.grad = None
    assert not gradient.alive


def test_a_moved_value_that_nobody_takes_ends_with_its_name() -> None:
    with scope("s"):
        a = empty(1)
        move(a)
        assert not a.alive


# ---- S22: no fields, no object ----


def test_a_struct_without_fields_is_null_and_costs_nothing(trace) -> None:
    first = statistics()
    with trace() as t:
        with scope("s") as s:
            for _ in range(1000):
                nothing = struct(Nothing())
                register(nothing)
                acquire(nothing)
                release(nothing)
                release(nothing)
                escape(nothing)
            holder = struct({"nothing": Nothing(), "list": []})
            assert s.count == 1
            assert (holder.nothing.handle, holder.list.handle) == (0, 0)

    assert nothing.handle == 0
    assert statistics().total_count - first.total_count == t.count("ALLOC") == 1
    assert t.count("ACQUIRE") == t.count("MISUSE") == 0


def test_a_million_null_structs_leave_no_trace_in_the_core() -> None:
    from tlmem.runtime.core import lib

    first = statistics()
    for _ in range(100_000):
        lib.tlm_acquire(0, 1)
        lib.tlm_release(0, 1)
        lib.tlm_register(0)
        lib.tlm_unregister(0)
        lib.tlm_free(0)
    now = statistics()

    assert (now.total_count, now.acquires, now.releases) == (
        first.total_count,
        first.acquires,
        first.releases,
    )


# ---- errors ----


def test_an_unknown_field_is_what_python_calls_it() -> None:
    layer = struct(Layer(empty(1), empty(1)))
    row = struct([empty(1)])

    with pytest.raises(AttributeError, match="Layer.*wieght"):
        _ = layer.wieght
    with pytest.raises(AttributeError, match="fixed"):
        layer.wieght = empty(1)
    with pytest.raises(KeyError, match="weight, bias, units"):
        layer["wieght"]
    with pytest.raises(IndexError, match="1"):
        row[1]
    assert not hasattr(layer, "wieght")
    assert row[-1] is row[0]


def test_a_freed_tensor_makes_no_struct_and_leaves_the_others_as_they_were() -> None:
    with scope("gone"):
        gone = empty(1)
    a = empty(1)
    before = live_objects()

    with pytest.raises(UseAfterFree, match="scope 'gone'"):
        struct({"deep": [{"a": a}, gone]})

    assert (a.count, live_objects()) == (1, before)


def test_a_freed_struct_names_itself_and_its_scope() -> None:
    with scope("epoch"):
        layer = struct(Layer(empty(1), empty(1)))

    with pytest.raises(UseAfterFree, match=r"struct Layer\{weight,bias,units\}.*scope 'epoch'"):
        _ = layer.weight
    with pytest.raises(UseAfterFree):
        layer.weight = empty(1)
    with pytest.raises(DoubleFree, match="epoch"):
        layer.free()
    assert "freed" in repr(layer)


def test_what_is_no_container_or_contains_itself_makes_no_struct() -> None:
    with pytest.raises(TypeError, match="int"):
        struct(3)
    with pytest.raises(TypeError, match="Layer|type"):
        struct(Layer)
    ring: list = [empty(1)]
    ring.append({"back": ring})
    with pytest.raises(ValueError, match="contains itself"):
        struct(ring)
    with pytest.raises(TypeError, match="copy or pickle"):
        copy.copy(struct([1]))


def test_plain_values_are_kept_as_they_are() -> None:
    layer = struct(Layer(empty(1), empty(1), units=7))
    layer.units += 1

    assert (layer.units, layer.fields, len(layer)) == (8, ("weight", "bias", "units"), 3)
    assert list(layer) == ["weight", "bias", "units"]
    assert list(struct((1, 2))) == [1, 2]
    assert "weight" in layer
    assert repr(struct({"n": 1})) == "dict(n=1)"


def test_structs_left_by_break_continue_and_exception_are_all_freed() -> None:
    """B6: some ways out skipped the cleanup."""
    before = live_objects()
    for step in range(4):
        try:
            with scope("step"):
                layer = struct(Layer(empty(1), empty(1)))
                if step == 0:
                    continue
                if step == 1:
                    raise ValueError
                layer.weight = empty(2)
                if step == 3:
                    break
        except ValueError:
            pass

    assert live_objects() == before
