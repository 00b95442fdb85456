"""Two answers that are never mixed, who strands memory, and where blocks lie."""

import gc

import numpy as np
import pytest
from replaying.made import Ran, Script, growing, transformer

import tlmem
from tlmem.replaying import pools
from tlmem.replaying.answers import STEP_BYTES, answer, best, found_by
from tlmem.replaying.cuda import run
from tlmem.replaying.layout import layout_of
from tlmem.replaying.settings import DEFAULT, MIB, BadSetting
from tlmem.replaying.stranded import _pieces

EXPANDABLE = DEFAULT.changed(["expandable_segments:True"])


@pytest.mark.parametrize("line", ["", "expandable_segments:True", "max_split_size_mb:64"])
def test_the_smallest_device_completes_and_a_smaller_one_does_not(line: str) -> None:
    trace = transformer(steps=6).trace()
    settings = DEFAULT.changed([line])
    found = answer(trace, settings)
    less = found.smallest_bytes - found.within_bytes

    assert run(trace, settings.on(found.smallest_bytes)).completes
    assert not run(trace, settings.on(less)).completes
    assert trace.peak_requested <= found.smallest_bytes <= found.roomy.peak_reserved_bytes


def test_no_size_is_believed_below_one_that_is_too_small() -> None:
    """Runs complete by luck on devices of 60 to 62 steps, and from 80 steps on."""
    trace = growing(steps=2).trace()
    figures = run(trace, DEFAULT)

    def replay(capacity: int):
        steps = capacity // STEP_BYTES
        fine = capacity == 0 or steps >= 80 or 60 <= steps <= 62
        return figures if fine else run(trace, DEFAULT.on(STEP_BYTES))

    found = found_by(replay, DEFAULT, 50 * STEP_BYTES)

    assert found.smallest_bytes == 80 * STEP_BYTES


def test_of_settings_with_nearly_the_same_device_the_one_that_reserves_least_is_best() -> None:
    trace = growing(steps=8).trace()
    found = [answer(trace, DEFAULT), answer(trace, EXPANDABLE)]

    assert best(found) is found[1]


def test_a_block_keeps_its_segment_and_pages_are_counted_one_by_one() -> None:
    script = Script().alloc("a", 70 * MIB).alloc("k", 1.5 * MIB).free("a")
    whole = Ran(script.alloc("b", 2 * MIB))
    segment, size, block = _pieces(whole.parts, DEFAULT)
    assert size.sum() == whole.figures.reserved_bytes
    assert len(np.unique(segment)) == 2

    pages = Ran(script, EXPANDABLE)
    page, size, block = _pieces(pages.parts, EXPANDABLE)
    assert size.sum() == pages.figures.reserved_bytes == 80 * MIB
    assert (
        np.bincount(np.unique(page, return_inverse=True)[1], weights=size).tolist()
        == [20 * MIB] * 4
    )


def test_rectangles_are_what_is_reserved_and_used_at_each_moment() -> None:
    trace = transformer(steps=3).trace()
    layout = layout_of(trace, DEFAULT)
    figures = run(trace, DEFAULT)

    def at(shown, event: int) -> int:
        there = (shown.begin <= event) & (event < shown.end)
        return int((shown.high - shown.low)[there].sum())

    assert at(layout.segments, layout.peak) == figures.peak_reserved_bytes
    assert at(layout.segments, len(trace.events) - 1) == figures.reserved_bytes
    assert at(layout.blocks, len(trace.events) - 1) == figures.allocated_bytes
    reserved, used = layout.used(10, 7)
    assert (used <= reserved + 1e-9).all() and reserved.max() == pytest.approx(1)


def test_pages_that_go_back_end_in_the_picture() -> None:
    script = (
        Script().alloc("a", 70 * MIB).alloc("b", 10 * MIB).free("a").empty().alloc("c", 1 * MIB)
    )
    layout = layout_of(script.trace(), EXPANDABLE)
    there = layout.segments.end == 5

    assert int((layout.segments.high - layout.segments.low)[there].sum()) == 22 * MIB


# ---- tlmem's own pools: the code itself ----


@pytest.mark.parametrize("policy", pools.POLICIES)
def test_pools_reserve_at_least_what_is_asked_for(policy: str) -> None:
    trace = growing(steps=6, each=4).trace()
    found = pools.run(trace, pools.PoolSettings(policy))

    assert found.events == len(trace.events)
    assert found.peak_requested_bytes == trace.peak_requested
    assert found.peak_reserved_bytes >= trace.peak_requested


def test_a_persistent_pool_without_reuse_keeps_all_that_was_ever_asked_for() -> None:
    trace = growing(steps=4, each=4).trace()
    kept = pools.run(trace, pools.PoolSettings("persistent"))
    direct = pools.run(trace, pools.PoolSettings("direct"))

    assert kept.peak_reserved_bytes >= int(trace.size.sum())
    assert direct.peak_reserved_bytes < kept.peak_reserved_bytes / 3
    assert direct.reserved_bytes == 0 and kept.driver_frees == 0


def test_a_bounded_pool_keeps_its_budget_and_no_more() -> None:
    trace = growing(steps=4, each=4).trace()
    found = pools.run(trace, pools.PoolSettings("bounded", 20 * MIB))

    assert 0 < found.reserved_bytes <= 20 * MIB


def test_a_pool_on_a_device_that_is_too_small_fails() -> None:
    trace = growing(steps=2, each=4).trace()

    assert not pools.run(trace, pools.PoolSettings(), 30 * MIB).completes


def test_the_device_does_afterwards_what_it_did_before() -> None:
    trace = growing(steps=2, each=2).trace()
    device = tlmem.device("cpu")
    gc.collect()  # what earlier tests left in cycles would be freed meanwhile
    before = device.stats().current_bytes
    pools.run(trace, pools.PoolSettings("persistent"))

    assert device.stats().current_bytes == before


@pytest.mark.parametrize("pair", ["policy=none", "budget=x", "max_split_size_mb=32"])
def test_pools_refuse_what_they_do_not_have(pair: str) -> None:
    with pytest.raises(BadSetting):
        pools.PoolSettings().changed([pair])
