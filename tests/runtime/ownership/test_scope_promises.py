"""What scopes promise: S2, S4, S17, S30, S31, S36, S38 to S41, and the scopes' half of S52."""

import pytest
from runtime.things import Mock
from runtime.trace import live_objects, statistics

from tlmem.runtime.errors import NotInScope, NotRegistered, UnbalancedScope, UseAfterFree
from tlmem.runtime.ownership.holders import acquire, release, release_safe
from tlmem.runtime.ownership.scope import (
    current_scope_id,
    escape,
    in_scope,
    promote,
    register,
    run,
    scope,
    scope_depth,
    scope_stats,
    scope_tensor_count,
    unregister,
)
from tlmem.runtime.tensors.factories import empty, ones


def leave_normally() -> None:
    with scope("inner"):
        empty(1)


def leave_by_return() -> None:
    with scope("inner"):
        empty(1)
        return


def leave_by_break() -> None:
    for _ in range(3):
        with scope("inner"):
            empty(1)
            break


def leave_by_continue() -> None:
    for _ in range(1):
        with scope("inner"):
            empty(1)
            continue


def leave_by_exception() -> None:
    with pytest.raises(KeyError), scope("inner"):
        empty(1)
        raise KeyError


WAYS = [leave_normally, leave_by_return, leave_by_break, leave_by_continue, leave_by_exception]


@pytest.mark.parametrize("leave", WAYS)
def test_however_a_scope_is_left_it_frees_what_it_has_and_the_depth_is_balanced(leave) -> None:
    before, first = live_objects(), statistics()

    with scope("outer"):
        depth = scope_depth()
        leave()

        assert (scope_depth(), live_objects()) == (depth, before)

    now = statistics()
    assert now.total_count - first.total_count == now.freed_count - first.freed_count == 1


def test_exit_releases_each_record_once_last_in_first_out(trace) -> None:
    with trace() as t:
        with scope("s"):
            a, b, c = empty(1), empty(1), empty(1)
            t.name(a=a, b=b, c=c)

    assert t.rows("RELEASE", "FREE", "SCOPE_EXIT") == [
        ("RELEASE", "c", "scope s", 0),
        ("FREE", "c", 0, 0),
        ("RELEASE", "b", "scope s", 0),
        ("FREE", "b", 0, 0),
        ("RELEASE", "a", "scope s", 0),
        ("FREE", "a", 0, 0),
        ("SCOPE_EXIT", "s", 3, 0),
    ]


@pytest.mark.parametrize("count", [12, 13, 25, 200])
def test_s2_a_scope_that_had_to_grow_releases_every_record_in_reverse_order(count, trace) -> None:
    with trace() as t:
        with scope("s") as s:
            made = [empty(1) for _ in range(count)]
            t.name(**{f"t{number}": each for number, each in enumerate(made)})

    assert [name for _, name in t.pairs("FREE")] == [f"t{i}" for i in reversed(range(count))]
    assert (s.stats().allocations, s.stats().frees) == (count, count)


# ---- S36, S41: run ----


def test_run_returns_the_functions_own_result_and_frees_the_rest() -> None:
    kept = []
    result = object()

    def body() -> object:
        kept.append(empty(3))
        assert scope_depth() == 1
        return result

    assert run(body) is result
    assert not kept[0].alive
    assert scope_depth() == 0


def test_run_passes_the_functions_exception_through_and_frees_all() -> None:
    problem = ValueError("mine")
    kept = []

    def body() -> None:
        kept.append(empty(3))
        raise problem

    with pytest.raises(ValueError) as caught:
        run(body, "failing")

    assert caught.value is problem
    assert not kept[0].alive
    assert scope_depth() == 0


def test_s36_a_tensor_that_run_returns_has_ended_with_its_scope() -> None:
    result = run(lambda: ones(3))

    assert (result.alive, result.escaped) == (False, False)
    with pytest.raises(UseAfterFree):
        result.tolist()


def test_a_failing_operation_inside_run_surfaces_as_itself_and_the_scope_is_cleaned() -> None:
    kept = []

    def body() -> None:
        kept.append(ones((2, 3)))
        kept[0] + ones((4, 5))

    before = live_objects()
    with pytest.raises(ValueError, match="2,3"):
        run(body)

    assert live_objects() == before
    assert not kept[0].alive


def test_nested_runs_free_inner_before_outer(trace) -> None:
    with trace() as t:

        def outer() -> None:
            a = empty(1)
            t.name(a=a)
            run(lambda: t.name(b=empty(1)), "inner")
            t.name(c=empty(1))

        run(outer, "outer")

    assert [name for kind, name in t.pairs("FREE")] == ["b", "c", "a"]
    assert t.rows("SCOPE_ENTER", "SCOPE_EXIT") == [
        ("SCOPE_ENTER", "outer", "outer", 1),
        ("SCOPE_ENTER", "inner", "inner", 2),
        ("SCOPE_EXIT", "inner", 1, 0),
        ("SCOPE_EXIT", "outer", 2, 0),
    ]


# ---- S38: register ----


def test_register_outside_any_scope_does_nothing(trace) -> None:
    a = empty(1)
    mock = Mock()

    with trace(a=a) as t:
        assert register(a) is a
        assert register(mock) is mock

    assert t.rows() == []
    assert (a.count, mock.freed) == (1, 0)


def test_register_takes_what_a_handle_owns_into_the_innermost_scope_only(trace) -> None:
    a = empty(1)

    with trace(a=a) as t:
        with scope("outer"):
            with scope("inner") as inner:
                assert register(a) is a
                assert (inner.count, a.count) == (1, 1)
            assert not a.alive
            assert scope_tensor_count() == 0

    assert t.rows("REGISTER", "UNREGISTER", "ACQUIRE", "RELEASE", "FREE") == [
        ("UNREGISTER", "a", "handle", 1),
        ("REGISTER", "a", "scope inner", 1),
        ("RELEASE", "a", "scope inner", 0),
        ("FREE", "a", 0, 0),
    ]


def test_s38_a_handle_that_gave_its_count_to_a_scope_has_none(trace) -> None:
    a, b = empty(1), empty(1)
    with trace(a=a, b=b) as t, scope("s") as s:
        register(a)
        register(b)
        release_safe(a)
        assert not a.alive
        assert escape(b).alive
        assert (s.stats().frees + s.stats().escaped, b.count) == (2, 1)

    assert b.alive
    assert t.misuses() == []


def test_registering_twice_counts_once_frees_once_and_is_recorded_as_misuse(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = empty(1)
            t.name(a=a)
            register(a)
            assert scope_tensor_count() == 1

    assert t.misuses() == [("a", "double register")]
    assert t.of("a").count("FREE") == 1


def test_unregister_removes_the_record_and_leaves_the_count_alone(trace) -> None:
    """B1: a move out of a scope must not release what it moves."""
    with trace() as t:
        with scope("outer"):
            with scope("inner"):
                a = ones(2)
                t.name(a=a)
                assert unregister(a) is a
                assert a.count == 1
            assert a.tolist() == [1.0, 1.0]
            register(a)

    assert t.rows("REGISTER", "UNREGISTER", "RELEASE", "FREE") == [
        ("REGISTER", "a", "scope inner", 1),
        ("UNREGISTER", "a", "scope inner", 1),
        ("REGISTER", "a", "scope outer", 1),
        ("RELEASE", "a", "scope outer", 0),
        ("FREE", "a", 0, 0),
    ]


def test_promote_and_register_hand_over_without_acquire_or_release(trace) -> None:
    def callee():
        with scope("callee"):
            made = empty(1)
            t.name(a=made)
            return promote(made)

    with trace() as t:
        with scope("caller"):
            first = statistics().floating
            a = callee()
            assert statistics().floating == first + 1
            register(a)
            assert statistics().floating == first

    assert t.counts("a") == [1, 1, 1, 1, 0, 0]
    assert t.of("a") == ["ALLOC", "REGISTER", "PROMOTE", "REGISTER", "RELEASE", "FREE"]


def test_unregister_of_what_no_scope_has_is_an_error_that_changes_nothing(trace) -> None:
    a = empty(1)

    with trace(a=a) as t:
        with pytest.raises(NotRegistered, match=f"object {a.handle}"):
            unregister(a)
        with pytest.raises(NotRegistered):
            promote(a)

    assert t.misuses() == [("a", "unpaired register")] * 2
    assert (a.alive, a.count) == (True, 1)


# ---- S39: escape ----


def test_escape_outside_a_scope_is_an_error_and_the_method_a_silent_no_op() -> None:
    a = empty(1)

    with pytest.raises(NotInScope, match="not currently in a scope"):
        escape(a)
    with pytest.raises(NotInScope, match="not currently in a scope"):
        escape(Mock())

    assert a.escape() is a
    assert (a.count, a.escaped) == (1, False)


def test_escape_returns_the_same_tensor_and_leaves_it_in_the_scopes_count(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = empty(1)
            t.name(a=a)
            assert escape(a) is a
            assert a.escaped
            assert scope_tensor_count() == 1
        assert a.alive
        assert [text.split(" #")[0] for text in a.holders()] == ["handle"]
        del a

    assert t.rows("ESCAPE", "RELEASE", "FREE", "SCOPE_EXIT") == [
        ("ESCAPE", "a", "handle", 1),
        ("SCOPE_EXIT", "s", 0, 0),
        ("RELEASE", "a", "handle", 0),
        ("FREE", "a", 0, 0),
    ]


def test_an_escaped_tensor_is_not_handed_to_the_outer_scope() -> None:
    with scope("outer"):
        with scope("inner"):
            a = escape(empty(1))
        assert scope_tensor_count() == 0

    assert a.alive


def test_escape_from_an_inner_scope_takes_a_tensor_from_its_real_owner() -> None:
    with scope("outer") as outer:
        a = empty(1)
        with scope("inner") as inner:
            escape(a)

    assert a.alive
    assert (outer.stats().escaped, inner.stats().allocations) == (1, 0)


def test_escaping_what_the_handle_owns_already_changes_nothing(trace) -> None:
    a = empty(1)
    with trace(a=a) as t:
        with scope("s"):
            assert escape(a) is a

    assert a.alive
    assert t.of("a") == []


def test_escape_of_a_freed_tensor_is_use_after_free() -> None:
    with scope("gone"):
        a = empty(1)

    with scope("s"), pytest.raises(UseAfterFree, match="scope 'gone'"):
        escape(a)


# ---- S40: introspection ----


def test_introspection_outside_a_scope() -> None:
    assert (in_scope(), scope_depth(), current_scope_id(), scope_tensor_count()) == (
        False,
        0,
        -1,
        0,
    )


def test_introspection_speaks_of_the_innermost_scope() -> None:
    with scope("a") as a:
        empty(1)
        with scope("b") as b:
            assert in_scope()
            assert (scope_depth(), current_scope_id(), scope_tensor_count()) == (2, b.id, 0)
            assert (a.depth, b.depth) == (1, 2)
        assert (scope_depth(), current_scope_id(), scope_tensor_count()) == (1, a.id, 1)


def test_scope_ids_are_never_used_again() -> None:
    seen = set()
    for _ in range(100):
        with scope():
            seen.add(current_scope_id())

    assert len(seen) == 100


# ---- S52: labels and statistics ----


def test_the_statistics_of_a_scope_add_up(trace) -> None:
    with scope("sums") as s:
        tensors = [empty(1) for _ in range(10)]
        for each in tensors[:3]:
            escape(each)
        acquire(tensors[9], "cache")
        assert scope_stats() == s.stats()
        assert (s.stats().allocations, s.stats().escaped) == (10, 3)

    done = s.stats()
    assert (done.allocations, done.frees, done.escaped, done.leaked) == (10, 6, 3, 1)
    assert done.allocations == done.frees + done.escaped + done.leaked
    assert (done.label, done.id) == ("sums", s.id)
    release(tensors[9], "cache")


def test_statistics_outside_a_scope_are_an_error() -> None:
    with pytest.raises(NotInScope, match="not currently in a scope"):
        scope_stats()
    with pytest.raises(NotInScope, match="not entered"):
        scope("never").stats()


def test_a_scope_can_be_entered_again_but_not_twice_at_once() -> None:
    s = scope("again")
    with s:
        first = s.id
        with pytest.raises(UnbalancedScope, match="entered already"):
            s.__enter__()
    with s:
        assert s.id != first


# ---- out of order ----


def test_a_scope_left_before_its_inner_one_leaves_that_first_and_says_so(trace) -> None:
    with trace() as t:
        with pytest.raises(UnbalancedScope, match="'outer'.*'inner'"):
            with scope("outer"):
                t.name(a=empty(1))
                inner = scope("inner").__enter__()
                b = empty(1)
                t.name(b=b)
        with pytest.raises(UnbalancedScope, match="left already"):
            inner.__exit__(None, None, None)

    assert [name for _, name in t.pairs("FREE")] == ["b", "a"]
    assert [what for _, what in t.misuses()] == ["unbalanced scope", "unbalanced scope"]
    with pytest.raises(UseAfterFree, match="scope 'inner'"):
        b.tolist()


def test_s2_all_scopes_that_were_not_left_inside_another_are_left_with_it(trace) -> None:
    with trace() as t:
        with pytest.raises(UnbalancedScope, match="'outer'.*'innermost'"):
            with scope("outer"):
                t.name(a=empty(1))
                scope("inner").__enter__()
                t.name(b=empty(1))
                scope("innermost").__enter__()
                t.name(c=empty(1))
        assert scope_depth() == 0

    assert [name for _, name in t.pairs("FREE")] == ["c", "b", "a"]
    assert [name for _, name in t.pairs("SCOPE_EXIT")] == ["innermost", "inner", "outer"]


def test_an_error_on_its_way_is_not_replaced_by_an_unbalanced_scope() -> None:
    with pytest.raises(KeyError, match="mine") as caught, scope("outer"):
        scope("inner").__enter__()
        raise KeyError("mine")

    assert "inner" in caught.value.__notes__[0]
    assert scope_depth() == 0


# ---- S31: release_safe ----


def test_release_safe_frees_the_payload_at_once_and_a_repeat_does_nothing(trace) -> None:
    with trace() as t:
        with scope("s"):
            a = empty(4)
            t.name(a=a)
            first = statistics().current_bytes
            release_safe(a)
            release_safe(a)
            assert first - statistics().current_bytes == 16
            with pytest.raises(UseAfterFree):
                a.tolist()
            del a

    assert t.of("a").count("FREE") == 1
    assert t.misuses() == [("a", "use after free")]


def test_release_safe_leaves_the_memory_to_another_holder_also_when_it_is_repeated(trace) -> None:
    a = ones(2)
    acquire(a, "cache")
    with trace(a=a) as t:
        release_safe(a)
        release_safe(a)

    assert (a.tolist(), a.count) == ([1.0, 1.0], 1)
    assert (t.of("a"), t.misuses()) == (["RELEASE"], [])
    release(a, "cache")
    assert not a.alive
