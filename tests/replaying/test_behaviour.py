"""Each documented behaviour of PyTorch's caching allocator, with the place of its documentation.

[guide]: "A guide to PyTorch's CUDA Caching Allocator",
https://zdevito.github.io/2022/08/04/cuda-caching-allocator.html
[notes]: "CUDA semantics", the part on ``PYTORCH_ALLOC_CONF``,
https://docs.pytorch.org/docs/stable/notes/cuda.html
[source]: ``c10/cuda/CUDACachingAllocator.cpp``, a function of it where one is named
"""

import pytest
from replaying.made import KIB, Ran, Script

from tlmem.replaying.settings import DEFAULT, MIB

EXPANDABLE = DEFAULT.changed(["expandable_segments:True"])
COLLECTS = "garbage_collection_threshold:{},per_process_memory_fraction:0.5"


# ---- sizes: [guide] "Allocation of blocks", [source] constants at the head ----


@pytest.mark.parametrize(
    ("asked", "block"),
    [(1, 512), (512, 512), (513, 1024), (100_000, 100_352), (3 * MIB + 1, 3 * MIB + 512)],
)  # fmt: skip
def test_sizes_are_multiples_of_512(asked: int, block: int) -> None:
    assert Ran(Script().alloc("a", asked)).block(0) == block


@pytest.mark.parametrize(
    ("asked", "reserved"),
    [
        (1, 2), (MIB, 2), (MIB + 1, 20), (10 * MIB - 512, 20), (10 * MIB, 10), (11 * MIB, 12),
        (33 * MIB, 34),
    ],
)  # fmt: skip
def test_segments_have_2_or_20_mib_or_their_own_size_in_steps_of_2(
    asked: int, reserved: int
) -> None:
    assert Ran(Script().alloc("a", asked)).reserved == reserved


def test_small_blocks_share_a_segment() -> None:
    script = Script()
    for n in range(4):
        script.alloc(str(n), 512 * KIB)
    assert Ran(script).reserved == 2
    assert Ran(script.alloc("more", 1)).reserved == 4


def test_large_blocks_share_a_segment_of_20_mib() -> None:
    script = Script().alloc("a", 6 * MIB).alloc("b", 6 * MIB).alloc("c", 6 * MIB)
    assert Ran(script).reserved == 20
    assert Ran(script.alloc("d", 6 * MIB)).reserved == 40


def test_small_and_large_blocks_never_share_a_segment() -> None:
    script = Script().alloc("a", 2 * MIB).alloc("b", 1000)
    assert Ran(script).reserved == 22


# ---- reuse: [guide] "Reuse of blocks"; [source] the comment at the head ----


def test_a_freed_block_serves_again() -> None:
    ran = Ran(Script().alloc("a", 40 * MIB).free("a").alloc("b", 40 * MIB))
    assert (ran.reserved, ran.figures.driver_allocs) == (40, 1)
    assert ran.address(2) == ran.address(0)


def test_freed_memory_stays_reserved() -> None:
    assert Ran(Script().alloc("a", 40 * MIB).free("a")).reserved == 40


def test_the_smallest_block_that_fits_is_taken() -> None:
    script = Script().alloc("a", 80 * MIB).alloc("b", 60 * MIB).alloc("c", 100 * MIB)
    ran = Ran(script.free("a", "b", "c").alloc("d", 50 * MIB))
    assert ran.address(6) == ran.address(1)


def test_of_blocks_of_one_size_the_lowest_is_taken() -> None:
    script = Script().alloc("a", 60 * MIB).alloc("b", 60 * MIB)
    ran = Ran(script.free("b", "a").alloc("c", 60 * MIB))
    assert ran.address(4) == ran.address(0)


def test_a_larger_block_is_split_and_the_rest_serves() -> None:
    ran = Ran(Script().alloc("a", 40 * MIB).free("a").alloc("b", 30 * MIB).alloc("c", 10 * MIB))
    assert ran.reserved == 40
    assert ran.address(3) == ran.address(2) + 30 * MIB


def test_a_large_block_is_split_only_where_more_than_1_mib_is_left() -> None:
    ran = Ran(Script().alloc("a", 40 * MIB).free("a").alloc("b", 39 * MIB))
    assert ran.block(2) == 40 * MIB
    ran = Ran(Script().alloc("a", 40 * MIB).free("a").alloc("b", 39 * MIB - 512))
    assert ran.block(2) == 39 * MIB - 512


def test_a_small_block_is_split_where_512_bytes_are_left() -> None:
    ran = Ran(Script().alloc("a", 1024).free("a").alloc("b", 512))
    assert ran.block(2) == 512


def test_free_neighbours_are_merged() -> None:
    script = Script().alloc("a", 5 * MIB).alloc("b", 5 * MIB).alloc("c", 5 * MIB)
    ran = Ran(script.free("a", "c", "b").alloc("d", 9 * MIB))
    assert ran.reserved == 20
    assert ran.address(6) == ran.address(0)


def test_a_hole_between_blocks_that_are_used_serves_only_what_fits() -> None:
    script = Script().alloc("a", 6 * MIB).alloc("b", 6 * MIB).alloc("c", 6 * MIB).free("b")
    assert Ran(script.alloc("d", 7 * MIB)).reserved == 40
    assert Ran(script.alloc("e", 6 * MIB)).reserved == 40


def test_a_stream_does_not_use_blocks_of_another() -> None:
    """[guide] "Streams", [source]: blocks belong to the stream they were allocated on."""
    script = Script(lanes=2).alloc("a", 40 * MIB).free("a").alloc("b", 40 * MIB, lane=1)
    assert Ran(script).reserved == 80


def test_a_private_pool_shares_nothing_and_keeps_its_memory_until_it_is_idle() -> None:
    """[source] the note on CUDA graph capture; release_cached_blocks, its freeable pools."""
    script = Script(lanes=2, pools=[0, 1]).alloc("a", 40 * MIB).free("a")
    script.alloc("b", 40 * MIB, lane=1).free("b")
    assert Ran(script).reserved == 80
    assert Ran(script.empty()).reserved == 40
    assert Ran(script.idle(1)).reserved == 40
    assert Ran(script.empty()).reserved == 0


def test_an_idle_private_pool_goes_back_when_a_request_is_refused() -> None:
    """[source] release_cached_blocks: on a retry, too."""
    script = Script(lanes=2, pools=[0, 1]).alloc("a", 40 * MIB, lane=1).free("a")
    busy = Ran(script.alloc("b", 40 * MIB), DEFAULT.on(60 * MIB))
    assert busy.figures.failed_bytes == 40 * MIB
    script = Script(lanes=2, pools=[0, 1]).alloc("a", 40 * MIB, lane=1).free("a").idle(1)
    idle = Ran(script.alloc("b", 40 * MIB), DEFAULT.on(60 * MIB))
    assert (idle.figures.completes, idle.figures.retries, idle.reserved) == (True, 1, 40)


def test_nothing_goes_back_while_a_graph_is_captured() -> None:
    """[source] malloc: the cache is released only where no capture is underway."""
    script = Script(lanes=2, pools=[0, 1]).alloc("a", 40 * MIB).free("a")
    ran = Ran(script.alloc("b", 40 * MIB, lane=1), DEFAULT.on(60 * MIB))
    assert (ran.figures.failed_bytes, ran.figures.retries) == (40 * MIB, 0)
    assert Ran(script, DEFAULT.on(80 * MIB)).figures.completes


def test_a_pool_with_an_allocator_of_its_own_has_no_expandable_segments() -> None:
    """[source] malloc: these are only for pools without one."""
    script = Script(lanes=2, pools=[0, 1]).alloc("a", 12 * MIB, lane=1)
    assert Ran(script, EXPANDABLE).reserved == 20
    script.plain[1] = True
    assert Ran(script, EXPANDABLE).reserved == 12


# ---- giving back: [guide] "Out of memory and fragmentation" ----


def test_emptying_gives_back_segments_that_are_free_as_a_whole() -> None:
    script = Script().alloc("a", 40 * MIB).alloc("b", 6 * MIB).alloc("c", 6 * MIB)
    ran = Ran(script.free("a", "b").empty())
    assert ran.reserved == 20
    assert ran.figures.largest_free_bytes == 8 * MIB


def test_where_the_device_is_full_the_cache_is_given_back_and_the_driver_asked_again() -> None:
    script = Script().alloc("a", 40 * MIB).free("a").alloc("b", 60 * MIB)
    ran = Ran(script, DEFAULT.on(64 * MIB))
    assert ran.figures.completes
    assert (ran.reserved, ran.figures.retries, ran.figures.driver_frees) == (60, 1, 1)


def test_a_split_segment_is_not_given_back_and_the_run_fails() -> None:
    script = Script().alloc("a", 40 * MIB).free("a").alloc("k", 2 * MIB).alloc("b", 60 * MIB)
    ran = Ran(script, DEFAULT.on(64 * MIB))
    assert ran.figures.failed_bytes == 60 * MIB
    assert ran.figures.events == 3


def test_all_streams_are_waited_for_before_the_cache_goes_back() -> None:
    """[source] release_cached_blocks: blocks of record_stream are free then."""
    script = Script().alloc("a", 40 * MIB).wait("a").alloc("b", 30 * MIB).free("a")
    ran = Ran(script, DEFAULT.on(60 * MIB))
    assert (ran.figures.completes, ran.figures.retries, ran.reserved) == (True, 1, 30)
    roomy = Ran(script)
    assert (roomy.reserved, roomy.figures.retries) == (70, 0)
    script = Script().alloc("a", 40 * MIB).wait("a").empty().free("a")
    assert Ran(script).reserved == 0


def test_a_retry_does_not_search_the_cache_again() -> None:
    """[source] malloc: after the wait only the driver is asked (pytorch/pytorch#189504)."""
    script = Script().alloc("k", 2 * MIB).alloc("a", 9 * MIB).alloc("b", 9 * MIB)
    ran = Ran(script.wait("a", "b").alloc("c", 9 * MIB), DEFAULT.on(36 * MIB))
    assert (ran.figures.failed_bytes, ran.figures.largest_free_bytes) == (9 * MIB, 18 * MIB)


# ---- options: [notes] ----


def test_max_split_size_keeps_large_blocks_whole() -> None:
    """[notes] max_split_size_mb: no block larger than this is split."""
    script = Script().alloc("a", 200 * MIB).free("a").alloc("b", 50 * MIB)
    assert Ran(script).reserved == 200
    ran = Ran(script, DEFAULT.changed(["max_split_size_mb:100"]))
    assert ran.reserved == 250


def test_a_block_above_max_split_size_serves_requests_of_nearly_its_size() -> None:
    """[source]: requests within 20 MiB of it; [notes] max_non_split_rounding_mb changes that."""
    script = Script().alloc("a", 200 * MIB).free("a").alloc("b", 181 * MIB)
    ran = Ran(script, DEFAULT.changed(["max_split_size_mb:100"]))
    assert (ran.reserved, ran.block(2)) == (200, 200 * MIB)
    script = Script().alloc("a", 200 * MIB).free("a").alloc("b", 180 * MIB)
    settings = DEFAULT.changed(["max_split_size_mb:100"])
    assert Ran(script, settings).reserved == 380
    assert Ran(script, settings.changed(["max_non_split_rounding_mb:64"])).reserved == 200


def test_blocks_above_max_split_size_go_back_before_all_others() -> None:
    """[source] release of oversize blocks, which is no retry of the whole."""
    settings = DEFAULT.changed(["max_split_size_mb:64"]).on(230 * MIB)
    script = Script().alloc("s", 20 * MIB).alloc("a", 100 * MIB).alloc("b", 100 * MIB)
    ran = Ran(script.free("s", "a", "b").alloc("c", 130 * MIB), settings)
    assert ran.figures.completes
    assert (ran.figures.retries, ran.figures.driver_frees, ran.reserved) == (0, 2, 150)


@pytest.mark.parametrize(
    ("divisions", "asked", "block"),
    [
        (4, 1200 * KIB, 1280 * KIB),
        (4, 1280 * KIB, 1280 * KIB),
        (4, 1793 * KIB, 2048 * KIB),
        (1, 1200 * KIB, 1200 * KIB),
        (4, 2000, 2048),
        (8, 33 * MIB, 36 * MIB),
    ],
)
def test_roundup_power2_divisions_round_between_powers_of_two(
    divisions: int, asked: int, block: int
) -> None:
    """[notes] roundup_power2_divisions: 1200 with 4 divisions becomes 1280."""
    settings = DEFAULT.changed([f"roundup_power2_divisions:{divisions}"])
    assert Ran(Script().alloc("a", asked), settings).block(0) == block


def test_divisions_can_differ_by_interval() -> None:
    """[notes] the form with brackets; sizes from 256 MiB on have the number behind 256.

    The notes speak of sizes below it, and of 4 divisions from 512 MiB to 1 GiB; the parser of
    PyTorch (c10/core/AllocatorConfig.cpp) fills the interval that begins there, and the one before
    ``>`` with the number behind that.
    """
    settings = DEFAULT.changed(["roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"])

    def block(mib: float) -> float:
        return Ran(Script().alloc("a", mib * MIB), settings).block(0) / MIB

    assert [block(mib) for mib in (100.5, 260, 520, 800, 1100, 2100, 4097)] == [
        100.5, 260, 768, 1024, 1152, 2304, 4608,
    ]  # fmt: skip


def test_collecting_gives_idle_segments_back_above_the_threshold() -> None:
    """[notes] garbage_collection_threshold: above it, old unused blocks go first."""
    script = Script().alloc("a", 40 * MIB).alloc("b", 40 * MIB).free("a")
    for n in range(6):
        script.alloc(f"x{n}", 30 * MIB)
        script.free(f"x{n}") if n else None
    script.free("b").alloc("c", 70 * MIB)
    settings = DEFAULT.changed([COLLECTS.format(0.4)]).on(440 * MIB)
    ran = Ran(script, settings)
    plain = Ran(script, DEFAULT.on(220 * MIB))
    assert plain.figures.collections == 0
    assert ran.figures.collections == 1 and ran.figures.driver_frees >= 1
    assert ran.figures.retries == 0
    assert ran.reserved < plain.reserved


def test_collecting_needs_a_memory_fraction() -> None:
    """[source] malloc: the threshold is a share of what set_per_process_memory_fraction allows."""
    script = Script().alloc("a", 400 * MIB).free("a").alloc("b", 500 * MIB)
    alone = DEFAULT.changed(["garbage_collection_threshold:0.1"]).on(1000 * MIB)
    assert Ran(script, alone).figures.collections == 0
    limited = DEFAULT.changed([COLLECTS.format(0.1)])
    assert Ran(script, limited).figures.collections == 0  # a device that is never full
    assert Ran(script, limited.on(2000 * MIB)).figures.collections == 1


def test_a_memory_fraction_is_a_device_that_is_smaller() -> None:
    """[notes] per_process_memory_fraction."""
    script = Script().alloc("a", 40 * MIB).free("a").alloc("b", 60 * MIB)
    half = DEFAULT.changed(["per_process_memory_fraction:0.5"])
    assert Ran(script, half.on(120 * MIB)).figures.retries == 1
    assert Ran(script, half.on(118 * MIB)).figures.failed_bytes == 60 * MIB


def test_under_a_memory_fraction_expandable_requests_count_as_segments() -> None:
    """[source] alloc_block: the size of a segment is held against the limit before pages are
    mapped, though fewer may be missing, and though more may be mapped.
    """
    script = Script().alloc("a", 18 * MIB).alloc("b", 3 * MIB)
    assert Ran(script, EXPANDABLE.on(40 * MIB)).reserved == 40
    limited = EXPANDABLE.changed(["per_process_memory_fraction:0.5"])
    assert Ran(script, limited.on(60 * MIB)).figures.failed_bytes == 3 * MIB
    # One page more would do, and the segment that would be made without pages is as large.
    grown = Script().alloc("a", 38 * MIB).free("a").alloc("b", 42 * MIB)
    assert Ran(grown, EXPANDABLE.on(60 * MIB)).figures.retries == 0
    assert Ran(grown, limited.on(120 * MIB)).figures.retries == 1
    # 12 MiB are held against the limit, and 20 are mapped.
    assert Ran(Script().alloc("a", 12 * MIB), limited.on(28 * MIB)).reserved == 20


# ---- expandable segments: [notes] expandable_segments, [source] the note on them ----


def test_an_expandable_segment_grows_by_pages_of_2_and_20_mib() -> None:
    assert Ran(Script().alloc("a", 1000), EXPANDABLE).reserved == 2
    assert Ran(Script().alloc("a", 21 * MIB), EXPANDABLE).reserved == 40
    assert Ran(Script().alloc("a", 12 * MIB).alloc("b", 12 * MIB), EXPANDABLE).reserved == 40


def test_an_expandable_segment_has_one_range_of_addresses_for_each_stream() -> None:
    script = Script(lanes=2).alloc("a", 30 * MIB).alloc("b", 30 * MIB).alloc("c", 30 * MIB, lane=1)
    ran = Ran(script, EXPANDABLE)
    assert ran.figures.segments == 2
    assert ran.address(1) == ran.address(0) + 30 * MIB


def test_a_free_end_of_an_expandable_segment_grows_to_a_larger_block() -> None:
    script = Script().alloc("a", 60 * MIB).free("a").alloc("b", 100 * MIB)
    assert Ran(script, EXPANDABLE).reserved == 100
    assert Ran(script).reserved == 160


def test_expandable_segments_split_down_to_512_bytes() -> None:
    script = Script().alloc("a", 40 * MIB).free("a").alloc("b", 40 * MIB - 512)
    assert Ran(script, EXPANDABLE).block(2) == 40 * MIB - 512


def test_a_block_within_is_preferred_to_the_end_that_can_grow() -> None:
    script = Script().alloc("a", 30 * MIB).alloc("k", 10 * MIB).alloc("e", 20 * MIB)
    ran = Ran(script.free("a", "e").alloc("b", 15 * MIB), EXPANDABLE)
    assert ran.address(5) == ran.address(0)


def test_emptying_unmaps_whole_free_pages_within_a_segment() -> None:
    script = Script().alloc("a", 70 * MIB).alloc("b", 10 * MIB).free("a").empty()
    ran = Ran(script, EXPANDABLE)
    assert ran.reserved == 20
    again = Ran(script.alloc("c", 50 * MIB), EXPANDABLE)
    assert again.reserved == 80
    assert again.address(4) == again.address(0)


def test_an_expandable_segment_gives_pages_to_another_stream_when_the_device_is_full() -> None:
    script = Script(lanes=2).alloc("a", 60 * MIB).free("a").alloc("b", 60 * MIB, lane=1)
    ran = Ran(script, EXPANDABLE.on(80 * MIB))
    assert ran.figures.completes and ran.figures.retries == 1
    assert ran.reserved == 60
