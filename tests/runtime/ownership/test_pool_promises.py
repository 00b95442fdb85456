"""What pools of tensors promise: S42 to S50."""

import numpy as np
import pytest
from runtime.trace import statistics

from tlmem.runtime.device import limit_device
from tlmem.runtime.errors import AlreadyPooled, InArena, StillHeld, UseAfterFree
from tlmem.runtime.ownership.frame import arena_empty
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.pool import TensorPool, global_pool
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, ones, zeros


def freed_since(first) -> int:
    """How many objects were freed since."""
    return statistics().freed_count - first.freed_count


# ---- S42: acquire and release ----


def test_acquire_gives_the_very_object_that_was_released_for_its_exact_key_only(trace) -> None:
    pool = TensorPool(name="p")
    a = empty((2, 3))

    with trace(a=a) as t:
        pool.release(a)
        assert pool.acquire((6,)) is None
        assert pool.acquire((3, 2)) is None
        assert pool.acquire((2, 3), "float64") is None
        assert pool.acquire((2, 3), "float32") is a
        assert pool.acquire((2, 3)) is None

    assert t.rows() == [
        ("UNREGISTER", "a", "handle", 1),
        ("REGISTER", "a", "pool", 1),
        ("POOL_PUT", "a", "pool", 1),
        *[("POOL_MISS", "", "pool", 0)] * 3,
        ("UNREGISTER", "a", "pool", 1),
        ("POOL_HIT", "a", "pool", 1),
        ("REGISTER", "a", "handle", 1),
        ("POOL_MISS", "", "pool", 0),
    ]
    assert (pool.stats().hits, pool.stats().misses) == (1, 4)


def test_s42_however_many_keys_there_are_each_gives_its_own() -> None:
    pool = TensorPool()
    for length in range(1, 60):
        pool.release(ones(length))

    for length in reversed(range(1, 60)):
        assert pool.acquire(length).shape == (length,)
        assert pool.acquire(length) is None
    assert (len(pool), pool.stats().hits, pool.stats().misses) == (0, 59, 59)


def test_s42_what_was_freed_behind_the_pools_back_is_a_miss() -> None:
    pool = TensorPool()
    a = ones(3)
    pool.release(a)
    a.free()

    assert pool.acquire(3) is None
    assert (pool.stats().hits, pool.stats().misses, len(pool)) == (0, 1, 0)


def test_an_acquired_tensor_belongs_to_the_innermost_scope_or_to_its_handle() -> None:
    pool = TensorPool()
    pool.release(empty(4))
    with scope("s"):
        a = pool.acquire(4)
        assert [text.split(" #")[0] for text in a.holders()] == ["scope 's'"]
    assert not a.alive

    pool.release(empty(4))
    b = pool.acquire(4)
    assert [text.split(" #")[0] for text in b.holders()] == ["handle"]


def test_a_tensor_that_a_scope_owns_leaves_the_scope_when_it_is_pooled(trace) -> None:
    """The example in the README of ts-torch has its scope free what the pool keeps."""
    pool = TensorPool()
    with trace() as t:
        with scope("s") as s:
            a = ones(4)
            t.name(a=a)
            pool.release(a)
        assert a.alive
        assert pool.acquire(4) is a
        assert a.tolist() == [1.0, 1.0, 1.0, 1.0]

    assert t.of("a").count("FREE") == 0
    assert (s.stats().escaped, s.stats().frees) == (1, 0)


def test_releasing_twice_is_refused_and_two_acquires_never_share_memory() -> None:
    """B4: a pointer that was pooled twice was handed to two tensors."""
    pool = TensorPool(name="p")
    a = empty(4)
    pool.release(a)

    with pytest.raises(AlreadyPooled, match=f"object {a.handle}"):
        pool.release(a)
    with pytest.raises(AlreadyPooled):
        TensorPool().release(a)

    assert (pool.stats().size, pool.acquire(4), pool.acquire(4)) == (1, a, None)


def hold_by_struct(a):
    return struct({"field": a})


def hold_by_name(a):
    acquire(a, "cache")


def hold_by_array(a):
    return a.numpy()


def hold_by_view(a):
    return a[1:]


@pytest.mark.parametrize("hold", [hold_by_struct, hold_by_name, hold_by_array, hold_by_view])
def test_a_tensor_that_others_hold_is_refused_and_stays_as_it_is(hold, trace) -> None:
    pool = TensorPool()
    a = empty(4)
    other = hold(a)
    before = a.holders()

    with trace(a=a) as t:
        with pytest.raises(StillHeld, match="held by"):
            pool.release(a)

    assert t.misuses() == [("a", "pooled while held")]
    assert (a.holders(), pool.stats().size) == (before, 0)
    del other
    if hold is hold_by_name:
        release(a, "cache")
    pool.release(a)
    assert pool.stats().size == 1


def test_a_tensor_of_which_the_caller_has_no_count_is_refused() -> None:
    pool = TensorPool()
    with scope("s"):
        a = empty(4)
        kept = struct({"field": a}).escape()
    with pytest.raises(StillHeld, match="field"):
        pool.release(a)

    assert a.alive
    del kept


def test_freed_views_and_arena_tensors_are_refused() -> None:
    pool = TensorPool()
    with scope("s"):
        gone = empty(4)
        with pytest.raises(InArena):
            pool.release(arena_empty(4))
    with pytest.raises(UseAfterFree, match="scope 's'"):
        pool.release(gone)
    base = empty(4)
    with pytest.raises(TypeError, match="view"):
        pool.release(base[1:])

    assert len(pool) == 0


def test_a_moved_tensor_goes_into_the_pool_from_its_new_handle_only() -> None:
    pool = TensorPool()
    a = empty(4)
    b = move(a)
    with pytest.raises(UseAfterFree):
        pool.release(a)
    pool.release(b)

    assert pool.acquire(4) is b


def test_devices_do_not_share_keys() -> None:
    pool = TensorPool()
    with limit_device("cpu") as other:
        a = empty(4, device=other)
        pool.release(a)
        assert pool.keys() == [f"float32:[4]@{other.name}"]
        assert pool.acquire(4) is None
        assert pool.acquire(4, device=other.name) is a
        del a


# ---- S43, S44: how many and in which order ----


def test_a_full_key_frees_the_incoming_tensor_and_keeps_the_older_ones(trace) -> None:
    pool = TensorPool(2)
    a, b, c = empty(4), empty(4), empty(4)
    with trace(a=a, b=b, c=c) as t:
        for each in (a, b, c):
            pool.release(each)

    assert t.pairs("POOL_DROP", "FREE") == [("POOL_DROP", "c"), ("FREE", "c")]
    assert [each.alive for each in (a, b, c)] == [True, True, False]
    assert (pool.stats().size, pool.stats().drops) == (2, 1)


def test_a_pool_keeps_sixteen_per_key_by_default() -> None:
    pool = TensorPool()
    for _ in range(20):
        pool.release(empty(4))
        pool.release(empty(5))
        empty(6)

    tensors = [empty(4) for _ in range(20)]
    for each in tensors:
        pool.release(each)

    assert (pool.max_per_key, pool.key_size(4)) == (16, 16)


def test_the_last_released_is_the_first_acquired() -> None:
    pool = TensorPool()
    tensors = [empty(4) for _ in range(5)]
    for each in tensors:
        pool.release(each)

    assert [pool.acquire(4) for _ in range(5)] == tensors[::-1]


@pytest.mark.parametrize("wrong", [0, -1, 2**32])
def test_a_pool_that_keeps_nothing_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match=str(wrong)):
        TensorPool(wrong)


# ---- S45: statistics ----


def test_the_statistics_are_sums_and_the_hit_rate_is_zero_before_the_first_acquire() -> None:
    pool = TensorPool()
    assert pool.stats().hit_rate == 0.0

    a, b = empty(4), empty((2, 2), "int64")
    pool.release(a)
    pool.release(b)
    pool.acquire(4)
    for _ in range(3):
        pool.acquire(9)
    now = pool.stats()

    assert (now.size, now.hits, now.misses, now.hit_rate) == (1, 1, 3, 0.25)
    assert now.by_key == {"int64:[2,2]": 1}
    assert dict(now) == {
        "size": 1,
        "hits": 1,
        "misses": 3,
        "hit_rate": 0.25,
        "by_key": {"int64:[2,2]": 1},
        "puts": 2,
        "drops": 0,
    }
    with pytest.raises(KeyError, match="hits"):
        now["hitz"]


def test_s45_each_key_has_a_hit_rate_of_its_own(capsys) -> None:
    pool = TensorPool(name="rates")
    for length in (1, 2):
        pool.release(empty(length))
        pool.release(empty(length))
    for length in (1, 2, 2, 2):
        pool.acquire(length)
    pool.release(empty(2))
    pool.print_stats()

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("(hit rate: ")[2] for line in lines] == ["75%)", "100%)", "67%)"]


# ---- S46: clear ----


def test_clear_frees_everything_and_sets_the_counters_to_zero() -> None:
    pool = TensorPool()
    for size in (4, 4, 5):
        pool.release(empty(size))
    kept = [empty(4), empty(4)]
    for each in kept:
        pool.release(each)
    pool.acquire(9)
    first, size = statistics(), pool.stats().size

    pool.clear()

    assert freed_since(first) == size
    assert dict(pool.stats()) == dict(TensorPool().stats())
    assert not any(each.alive for each in kept)


def test_clear_key_frees_one_key_and_keeps_the_counters() -> None:
    pool = TensorPool()
    four, five = [empty(4), empty(4)], [empty(5)]
    for each in four + five:
        pool.release(each)
    pool.acquire(9)

    assert pool.clear_key(4, "float32") == 2
    assert pool.clear_key(77) == 0

    assert [each.alive for each in four + five] == [False, False, True]
    assert (pool.stats().misses, pool.keys()) == (1, ["float32:[5]"])


# ---- S47: prune ----


def test_prune_halves_by_default_rounding_down() -> None:
    pool = TensorPool()
    tensors = [empty(4) for _ in range(7)]
    for each in tensors:
        pool.release(each)
    first = statistics()

    assert pool.prune() == 4
    assert (freed_since(first), pool.stats().size) == (4, 3)
    assert [each.alive for each in tensors] == [True] * 3 + [False] * 4


def test_prune_begins_with_the_first_key_and_there_with_the_most_recent(trace) -> None:
    pool = TensorPool()
    tensors = {f"{size}{place}": empty(size) for place in "ab" for size in (4, 5)}
    with trace() as t:
        t.name(**{f"n{name}": each for name, each in tensors.items()})
        for each in tensors.values():
            pool.release(each)
        assert pool.prune(1) == 3

    assert t.pairs("FREE") == [("FREE", "n4b"), ("FREE", "n4a"), ("FREE", "n5b")]
    assert pool.keys() == ["float32:[5]"]


def test_prune_does_nothing_when_there_are_fewer_and_refuses_a_negative_target() -> None:
    pool = TensorPool()
    pool.release(a := empty(4))

    assert (pool.prune(1), pool.prune(50), a.alive) == (0, 0, True)
    with pytest.raises(ValueError, match="-1"):
        pool.prune(-1)


def test_prune_of_many_goes_beyond_one_batch() -> None:
    pool = TensorPool(1000)
    tensors = [empty(1) for _ in range(700)]
    for each in tensors:
        pool.release(each)
    first = statistics()

    assert pool.prune(10) == 690
    assert (freed_since(first), pool.stats().size) == (690, 10)


def test_s46_clearing_a_key_of_many_goes_beyond_one_batch() -> None:
    pool = TensorPool(1000)
    for kept in [empty(4) for _ in range(600)]:
        pool.release(kept)
    pool.release(empty(5))
    del kept

    assert pool.clear_key(4) == 600
    assert pool.keys() == ["float32:[5]"]


# ---- S48: keys ----


def test_keys_are_dtype_and_shape_as_text() -> None:
    pool = TensorPool()
    assert (pool.keys(), pool.key_size((10, 10), "float32")) == ([], 0)

    for shape, dtype in (((10, 10), "float32"), ((), "int64"), ((3,), "bool"), ((3,), "bool")):
        pool.release(kept := empty(shape, dtype))
        assert kept.alive

    assert pool.keys() == ["float32:[10,10]", "int64:[]", "bool:[3]"]
    assert pool.key_size([10, 10], np.float32) == 1
    assert pool.key_size((), int) == 1


def test_s48_keys_are_in_the_order_of_their_first_release_since_they_were_pruned() -> None:
    pool = TensorPool()
    for length in (1, 2, 3):
        pool.release(empty(length))
    assert pool.acquire(1) is not None
    assert pool.keys() == ["float32:[2]", "float32:[3]"]

    pool.prune(1)
    for length in (2, 1):
        pool.release(empty(length))
    assert pool.keys() == ["float32:[3]", "float32:[2]", "float32:[1]"]


# ---- S49, S50: the global pool, pool-aware factories ----


def test_there_is_one_global_pool() -> None:
    from tlmem.runtime.ownership import pool as module

    assert module.global_pool is global_pool
    assert global_pool.max_per_key == 16


def test_a_factory_takes_from_the_pool_and_initialises_what_it_took() -> None:
    pool = TensorPool()
    a = ones(4)
    a += 5
    pool.release(a)

    b = zeros(4, pool=pool)
    c = zeros(4, pool=pool)

    assert b is a
    assert (b.tolist(), c.tolist()) == ([0.0] * 4, [0.0] * 4)
    assert c is not a
    assert (pool.stats().hits, pool.stats().misses) == (1, 1)


def test_s50_what_a_factory_takes_from_a_pool_belongs_to_the_scope_that_is_named() -> None:
    pool = TensorPool()
    pool.release(a := ones(4))
    before = statistics().total_count

    with scope("outer") as outer, scope("inner") as inner:
        b = zeros(4, pool=pool, scope=outer)
        assert b is a
        assert [text.split(" #")[0] for text in b.holders()] == ["scope 'outer'"]
        assert (inner.count - inner.stats().escaped, statistics().total_count) == (0, before)
    assert not b.alive


def test_a_training_loop_over_a_pool_allocates_only_in_its_first_step() -> None:
    pool = TensorPool()

    def step() -> None:
        for shape in ((8, 8), (8,), (8, 4)):
            pool.release(zeros(shape, pool=pool))

    step()
    first = statistics()
    for _ in range(50):
        step()

    assert statistics().total_count == first.total_count
    assert (pool.stats().hits, pool.stats().misses) == (150, 3)
