"""Counts of plain objects (S1), records at reused addresses (S3), borrowed arguments (S19), and the
bugs of operations: B15, temporaries that nobody names, and B17, handles without a count."""

import ctypes
import gc
from contextlib import nullcontext

import pytest
from runtime.exits import each_way_out, recorded
from runtime.tensors.test_out import OPERATIONS, A
from runtime.trace import live_objects, statistics

from tlmem.runtime import core
from tlmem.runtime.core import ffi, lib
from tlmem.runtime.errors import NotAHolder, UseAfterFree
from tlmem.runtime.ownership.holders import acquire, release
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors import factories


def test_s1_first_registration_counts_one_and_the_last_release_frees_inside_its_call(trace) -> None:
    before = live_objects()
    with trace() as t, scope("s") as s:
        a = factories.ones(3)
        t.name(a=a)
        acquire(a, "cache")
        release(a, "cache")
        assert a.count == 1
        assert lib.tlm_unregister(a.handle) == 0
        lib.tlm_release(a.handle, core.FLOATING_HOLDER)
        assert not a.alive and live_objects() == before
        assert s.count == 1

    assert t.rows("ALLOC", "REGISTER", "ACQUIRE", "RELEASE", "FREE") == [
        ("ALLOC", "a", 12, 1),
        ("REGISTER", "a", "scope s", 1),
        ("ACQUIRE", "a", "cache", 2),
        ("RELEASE", "a", "cache", 1),
        ("RELEASE", "a", "floating", 0),
        ("FREE", "a", 0, 0),
    ]
    recorded(trace)


@pytest.mark.parametrize("order", ["abcdefgh", "hgfedcba", "dbhfacge"])
def test_s1_each_of_many_holders_counts_once_and_lets_go_of_its_own(order) -> None:
    tensor = factories.ones(3)
    for name in "abcdefgh":
        acquire(tensor, name)
    assert (tensor.count, sorted(tensor.holders()[1:])) == (9, list("abcdefgh"))

    for left, name in enumerate(order, 1):
        release(tensor, name)
        assert tensor.count == 9 - left
        assert sorted(tensor.holders()[1:]) == sorted(order[left:])


def test_s1_a_release_by_somebody_who_holds_nothing_changes_nothing(trace) -> None:
    a = factories.ones(3)
    with trace(a=a) as t:
        with pytest.raises(NotAHolder, match="cache is not one of its holders"):
            release(a, "cache")

    assert (a.count, a.tolist()) == (1, [1, 1, 1])
    assert t.misuses() == [("a", "over release")]


def test_s1_only_the_scope_itself_releases_its_count(trace) -> None:
    with trace() as t, scope("s") as s:
        a = factories.ones(3)
        t.name(a=a)
        own = core.holder(core.SCOPE, s.id)
        assert core.holders_of(a.handle) == [own]
        assert lib.tlm_release(a.handle, own) == lib.TLM_BAD_ARGUMENT
        assert lib.tlm_acquire(a.handle, own) == lib.TLM_BAD_ARGUMENT
        assert (a.count, a.tolist()) == (1, [1, 1, 1])

    assert t.of("a") == ["ALLOC", "REGISTER", "RELEASE", "FREE"]


def adopted(address: int) -> int:
    """A foreign object at an address."""
    out = ffi.new("tlm_object *")
    place = ffi.cast("void *", address)
    assert lib.tlm_foreign_register(place, 64, ffi.NULL, ffi.NULL, out) == 0
    return int(out[0])


@each_way_out
def test_s3_a_stale_record_does_not_release_the_new_tenant_of_its_address(leave, trace) -> None:
    memory = ctypes.create_string_buffer(64)
    address = ctypes.addressof(memory)
    made: dict[str, int] = {}

    def tenants() -> None:
        made["old"] = adopted(address)
        assert lib.tlm_register(made["old"]) == 0
        assert lib.tlm_foreign_gone(ffi.cast("void *", address)) == 0

        def move_in() -> None:
            made["new"] = adopted(address)
            assert lib.tlm_register(made["new"]) == 0
            assert lib.tlm_foreign_find(ffi.cast("void *", address)) == made["new"]

        leave(scope("inner"), move_in)
        assert lib.tlm_check(made["new"]) == lib.TLM_FREED

    with trace() as t:
        leave(scope("outer"), tenants)
        t.name(**made)

    assert made["old"] != made["new"]
    freed = [row[1] for row in t.rows("FREE")]
    assert sorted(freed) == ["new", "old"]
    assert t.of("old").count("RELEASE") == 0
    assert [name for name in t.misuses() if name[1] == "stale record"] == [("old", "stale record")]
    assert lib.tlm_foreign_find(ffi.cast("void *", address)) == 0


def test_s3_memory_that_was_pinned_ends_without_forgetting_the_new_tenant_of_its_address() -> None:
    memory = ctypes.create_string_buffer(64)
    place = ffi.cast("void *", ctypes.addressof(memory))
    pinned = ffi.new("tlm_object *")
    old = adopted(ctypes.addressof(memory))
    assert lib.tlm_pin(old, pinned) == place
    assert lib.tlm_foreign_gone(place) == 0
    new = adopted(ctypes.addressof(memory))

    lib.tlm_unpin(pinned[0])

    assert lib.tlm_foreign_find(place) == new != old
    lib.tlm_release(new, core.FLOATING_HOLDER)
    assert lib.tlm_foreign_find(place) == 0


def test_s3_a_stale_record_goes_when_its_address_is_registered_again_not_at_exit(trace) -> None:
    memory = ctypes.create_string_buffer(64)
    address = ctypes.addressof(memory)
    with trace() as t, scope("outer") as outer:
        old = adopted(address)
        assert lib.tlm_register(old) == 0
        assert lib.tlm_foreign_gone(ffi.cast("void *", address)) == 0
        assert outer.stats().frees == 0
        new = adopted(address)
        assert outer.stats().frees == 1
        t.name(old=old, new=new)
        lib.tlm_release(new, core.FLOATING_HOLDER)

    assert t.pairs("ALLOC", "MISUSE", "SCOPE_EXIT") == [
        ("ALLOC", "old"),
        ("MISUSE", "old"),
        ("ALLOC", "new"),
        ("SCOPE_EXIT", "outer"),
    ]


@each_way_out
@pytest.mark.parametrize("in_scope", [False, True], ids=["handle", "scope"])
def test_s19_an_argument_is_borrowed_no_event_on_entry_use_or_exit(leave, in_scope, trace) -> None:
    def callee(x) -> None:
        leave(scope("callee"), lambda: (x + 1, x.sum(), x @ x, x.tolist(), x.is_view))

    with scope("caller") if in_scope else nullcontext():
        a = factories.ones(3)
        with trace(a=a) as t:
            callee(a)
        assert (a.count, a.tolist()) == (1, [1, 1, 1])

    assert t.of("a") == []
    assert {name for kind, name in t.pairs("FREE")} == {name for kind, name in t.pairs("ALLOC")}


def test_s19_storing_an_argument_acquires_it_once_and_returning_it_not_at_all(trace) -> None:
    def stores(x):
        return struct({"x": x})

    def returns(x):
        return x

    a = factories.ones(3)
    with trace(a=a) as t:
        assert returns(a) is a
        kept = stores(a)
        assert a.count == 2
        del kept

    assert t.of("a") == ["ACQUIRE", "RELEASE"]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("in_scope", [False, True], ids=["outside", "in a scope"])
def test_b15_an_operation_leaves_its_result_and_nothing_else(name, in_scope, trace) -> None:
    """Temporaries are freed inside the call; what the test's own expression makes dies with it."""
    operation = OPERATIONS[name][0]
    a = factories.tensor(A)
    before = live_objects()
    then = statistics()
    for _ in range(3):
        if in_scope:
            with scope("step"):
                operation(a, None)
        else:
            result = operation(a, None)
            assert live_objects() - before >= {result.handle}
            assert result.count == 1
            del result
        gc.collect(0)
        assert live_objects() == before
    now = statistics()

    assert now.total_count - then.total_count == now.freed_count - then.freed_count > 0


def test_b17_what_an_accessor_hands_out_has_a_count_or_is_the_owner_itself(trace) -> None:
    a = factories.ones((2, 2))
    with trace(a=a) as t:
        for same in (a.to("cpu"), a.contiguous(), a.escape(), a[0].base):
            assert same is a
        del same
        gc.collect(0)
    assert set(t.of("a")) == {"ACQUIRE", "RELEASE"}, "of the view alone"
    assert a.count == 1

    view, array = a[0], a.numpy()
    assert (a.count, len(a.holders())) == (3, 3)
    del view, array
    assert a.count == 1
    with scope("s"):
        b = factories.ones(2)
        whole = b[:]
    for gone in (b, whole):
        with pytest.raises(UseAfterFree):
            gone.tolist()
