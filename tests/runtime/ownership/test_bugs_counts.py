"""Bugs of the seeds about counts that do not occur here: B10, B11, B12.

docs/bugs.md says what each of them was.
"""

from __future__ import annotations

import pytest
from runtime.exits import by_exception, each_way_out, recorded
from runtime.trace import live_objects, statistics

from tlmem.runtime.errors import NotAHolder, UseAfterFree
from tlmem.runtime.ownership.frame import arena_empty
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.parameters import drop_parameter, register_parameter
from tlmem.runtime.ownership.scope import promote, register, scope, unregister
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import full, ones

# ---- B10: borrowed arguments ----


@each_way_out
def test_b10_a_call_leaves_the_count_of_its_argument_alone(leave, trace) -> None:
    a = ones(2)

    def callee(argument) -> None:
        leave(scope("callee"), lambda: argument.sum().item())

    with trace(a=a) as t:
        for _ in range(5):
            callee(a)

    assert t.of("a") == []
    assert (a.count, a.tolist()) == (1, [1.0, 1.0])


def test_b10_reassigning_an_argument_releases_only_what_the_callee_made(trace) -> None:
    def callee(argument) -> float:
        argument = argument + 1
        t.name(first=argument)
        argument = argument * 2
        t.name(second=argument)
        return argument.sum().item()

    a = ones(2)
    with trace(a=a) as t:
        assert callee(a) == 8.0

    assert t.of("a") == []
    freed = [name for _, name in t.pairs("FREE")]
    assert freed.index("first") < freed.index("second")
    assert a.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("keep", ["returned", "stored"])
def test_b10_an_argument_that_is_returned_or_stored_gets_one_count_at_most(keep: str) -> None:
    a = ones(2)
    if keep == "returned":
        assert (lambda argument: argument)(a) is a
        assert a.count == 1
        return
    kept = struct({"a": a})
    assert a.count == 2
    del kept
    assert a.count == 1


# ---- B11: releases that released nothing ----


def held_by_scope():
    return ones(2)


def held_in_struct():
    return struct({"a": ones(2)}).a


def held_as_view():
    return ones(4)[1:]


def held_in_arena():
    return arena_empty(2)


def held_as_struct():
    return struct([ones(2)])


KINDS = [held_by_scope, held_in_struct, held_as_view, held_in_arena, held_as_struct]


@pytest.mark.parametrize("make", KINDS)
def test_b11_each_release_takes_a_count_whatever_kind_of_object_it_is(make, trace) -> None:
    first = statistics()
    with trace() as t:
        with scope("s"):
            thing = make()
            t.name(thing=thing)
            before = thing.count
            for _ in range(100):
                acquire(thing, "loop")
                release(thing, "loop")
                assert thing.count == before

    now = statistics()
    assert t.of("thing").count("ACQUIRE") >= 100
    assert now.acquires - first.acquires >= 100
    assert now.total_count - first.total_count == now.freed_count - first.freed_count
    recorded(trace)


@pytest.mark.parametrize("make", KINDS)
def test_b11_a_release_that_would_change_nothing_is_an_error(make, trace) -> None:
    with trace() as t:
        with scope("s"):
            thing = make()
            t.name(thing=thing)
            before = thing.holders()
            with pytest.raises(NotAHolder, match=f"object {thing.handle}.*stranger"):
                release(thing, "stranger")
            assert thing.holders() == before

    assert t.misuses() == [("thing", "over release")]


# ---- B12: acquire and release that are no pair ----


@each_way_out
@pytest.mark.parametrize("make", KINDS)
def test_b12_what_is_acquired_and_released_ends_with_its_scope(make, leave, trace) -> None:
    before = live_objects()
    with trace() as t:

        def work() -> None:
            thing = make()
            t.name(thing=thing)
            counts = [thing.count]
            for _ in range(3):
                acquire(thing, "reader")
                counts.append(thing.count)
            for _ in range(3):
                release(thing, "reader")
                counts.append(thing.count)
            assert counts == [counts[0] + more for more in (0, 1, 2, 3, 2, 1, 0)]

        leave(scope("s"), work)

    assert live_objects() == before
    mine = [row for row in t.rows("ACQUIRE", "RELEASE") if row[2] == "reader"]
    assert [row[0] for row in mine] == ["ACQUIRE"] * 3 + ["RELEASE"] * 3
    recorded(trace)


def test_b12_an_acquire_keeps_alive_what_its_scope_lets_go() -> None:
    """The reverse: an acquire that did nothing let a scope free what was held."""
    with scope("s"):
        a = full(2, 3)
        acquire(a, "cache")
    assert (a.tolist(), a.holders()) == ([3.0, 3.0], ["cache"])

    release(a, "cache")
    with pytest.raises(UseAfterFree):
        a.tolist()


@pytest.mark.parametrize("hand_back", [promote, unregister, move])
def test_b12_a_result_that_is_handed_back_has_one_count_at_every_step(hand_back, trace) -> None:
    def callee():
        with scope("callee"):
            made = ones(2)
            t.name(a=made)
            return hand_back(made)

    with trace() as t:
        with scope("caller"):
            for _ in range(3):
                result = register(callee())
                assert (result.count, len(result.holders())) == (1, 1)

    assert t.count("ACQUIRE") == 0
    assert t.count("ALLOC") == t.count("RELEASE") == t.count("FREE") == 3
    recorded(trace)


def test_b12_parameters_and_fields_pair_their_counts_when_they_are_replaced(trace) -> None:
    with trace() as t:
        layer = struct({"weight": ones(2)})
        for number in range(5):
            register_parameter("weight", full(2, number))
            layer.weight = full(2, number)
        drop_parameter("weight")
        by_exception(scope("s"), lambda held=layer: struct([held]))
        del layer

    assert t.count("ALLOC") == t.count("FREE")
    assert t.rows("MISUSE") == []
    table = recorded(trace).holders
    assert (table["end_ns"] >= 0).all()
