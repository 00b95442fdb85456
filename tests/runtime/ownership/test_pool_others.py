"""Pools over time and for others: the pools' half of S52 and S53.

Covers: printing, pruning by time, weak entries, things that tlmem did not make, and what happens
behind a pool's back. Does not cover: the pool itself (``test_pool_promises``).
"""

import gc
import io

import pytest
from runtime.things import Poolable
from runtime.trace import live_objects, statistics

from tlmem.runtime.errors import AlreadyPooled
from tlmem.runtime.ownership.pool import PoolableTensor, TensorPool
from tlmem.runtime.tensors.factories import empty


def freed_since(first) -> int:
    """How many objects were freed since."""
    return statistics().freed_count - first.freed_count


# ---- what happens behind its back ----


def test_a_tensor_freed_in_the_pool_is_passed_over(trace) -> None:
    pool = TensorPool()
    a, b = empty(4), empty(4)
    pool.release(a)
    pool.release(b)
    b.free()

    with trace(a=a, b=b) as t:
        assert pool.acquire(4) is a
        assert pool.acquire(4) is None

    assert t.misuses() == [("b", "stale record")]
    assert (pool.stats().size, pool.stats().hits, len(pool._kept)) == (0, 1, 0)


def test_a_pool_that_dies_frees_what_it_kept() -> None:
    before = live_objects()
    pool = TensorPool()
    pool.release(empty(4))
    pool.release(Poolable())
    del pool

    assert live_objects() == before


# ---- S52: printing, pruning by time, weak entries ----


def test_print_stats_tells_each_key_with_its_own_hit_rate() -> None:
    pool = TensorPool(name="layers")
    for size in (4, 5):
        pool.release(empty(size))
    for _ in range(3):
        pool.release(pool.acquire(4))
    pool.acquire((5,), "float64")
    out = io.StringIO()

    pool.print_stats(out)

    lines = out.getvalue().splitlines()
    assert lines[0].startswith("pool 'layers'")
    assert lines[0].endswith("2 tensors (hit rate: 75%)")
    assert lines[1:] == [
        "  float32:[4]: 1 tensors (hit rate: 100%)",
        "  float32:[5]: 1 tensors (hit rate: 0%)",
    ]


def test_auto_prune_halves_when_the_interval_has_passed_and_the_pool_is_used() -> None:
    now = [100.0]
    pool = TensorPool(auto_prune=True, prune_interval=60.0, clock=lambda: now[0])
    tensors = [empty(4) for _ in range(8)]
    for each in tensors:
        pool.release(each)

    now[0] = 159.9
    pool.acquire(9)
    assert pool.stats().size == 8
    now[0] = 160.0
    assert pool.stats().size == 8  # looking is no use
    pool.acquire(9)
    assert pool.stats().size == 4
    pool.acquire(9)
    assert pool.stats().size == 4
    now[0] = 220.0
    pool.acquire(9)
    assert pool.stats().size == 2


def test_a_weak_entry_is_freed_when_garbage_collection_takes_it() -> None:
    pool = TensorPool(weak=True)
    a, b = empty(4), empty(4)
    pool.release(a)
    pool.release(b)
    gc.collect()
    first = statistics()

    del b
    gc.collect()

    assert (freed_since(first), pool.stats().size) == (1, 1)
    assert pool.acquire(4) is a
    assert pool.acquire(4) is None
    assert (pool.stats().hits, pool.stats().misses, len(pool._kept)) == (1, 1, 0)


def test_a_weak_pool_keeps_things_of_others_only_as_long_as_the_program_does() -> None:
    pool = TensorPool(weak=True)
    a, b = Poolable(), Poolable()
    pool.release(a)
    pool.release(b)
    del b
    gc.collect()

    assert pool.stats().size == 1
    assert (pool.acquire((2,)), pool.acquire((2,))) == (a, None)


# ---- S53: things that tlmem did not make ----


def test_a_plain_object_with_three_attributes_is_a_poolable_tensor() -> None:
    pool = TensorPool(1)
    a, b = Poolable(dtype="int32"), Poolable(dtype="int32")
    assert isinstance(a, PoolableTensor)

    pool.release(a)
    with pytest.raises(AlreadyPooled):
        pool.release(a)
    pool.release(b)

    assert (a.freed, b.freed) == (0, 1)
    assert pool.keys() == ["int32:[2]"]
    assert pool.acquire((2,), "int32") is a
    assert pool.acquire((2,), "int32") is None


def test_what_cannot_be_pooled_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="int.*shape, dtype, handle"):
        TensorPool().release(3)


def test_clearing_frees_things_of_others_and_gathers_their_errors() -> None:
    class Bad(Poolable):
        def free(self) -> None:
            super().free()
            raise OSError("mine")

    pool = TensorPool()
    things = [Bad(), Poolable(), Bad()]
    for each in things:
        pool.release(each)

    with pytest.raises(ExceptionGroup, match="2 exceptions"):
        pool.clear()
    assert ([each.freed for each in things], len(pool)) == ([1, 1, 1], 0)
