"""Published results, in kind: what was said of expandable segments and of waste in training.

Where a result is not reproduced, the test says so by its name.
"""

from replaying.made import growing, transformer

from tlmem.replaying.answers import answer
from tlmem.replaying.cuda import run
from tlmem.replaying.settings import DEFAULT, MIB

EXPANDABLE = DEFAULT.changed(["expandable_segments:True"])


def test_batches_that_grow_strand_ten_times_their_size_and_expandable_segments_none() -> None:
    """The case for which PyTorch has expandable segments ([source], the note on them)."""
    trace = growing().trace()
    default, expandable = answer(trace, DEFAULT), answer(trace, EXPANDABLE)
    least = trace.peak_requested

    assert least == 948 * MIB
    assert default.roomy.peak_reserved_bytes > 9 * least
    assert expandable.roomy.peak_reserved_bytes <= 1.02 * least


def test_on_a_small_device_batches_that_grow_complete_with_any_setting() -> None:
    """The other answer: what was reserved is given back where it is needed, at a cost in time."""
    trace = growing().trace()
    default, expandable = answer(trace, DEFAULT), answer(trace, EXPANDABLE)

    assert default.smallest_bytes <= 1.02 * trace.peak_requested
    assert default.tight.retries > 5 and expandable.tight.retries == 0


def test_sequences_of_many_lengths_waste_a_good_part_and_expandable_segments_less() -> None:
    """GMLake (ASPLOS 2024) has 15% of fragmentation, up to 33%; STAlloc (2025) up to 43%."""
    trace = transformer().trace()
    default, expandable = run(trace, DEFAULT), run(trace, EXPANDABLE)
    waste = 1 - default.peak_allocated_bytes / default.peak_reserved_bytes
    left = 1 - expandable.peak_allocated_bytes / expandable.peak_reserved_bytes

    assert 0.1 < waste < 0.5
    assert left < waste / 2


def test_that_gmlake_itself_needs_less_is_not_reproduced_but_bounded() -> None:
    """Stitching of virtual memory is not simulated: no allocator goes below what is asked for."""
    trace = transformer().trace()

    assert run(trace, EXPANDABLE).peak_reserved_bytes >= trace.peak_requested


def test_max_split_size_can_make_things_worse() -> None:
    trace = transformer().trace()
    worse = run(trace, DEFAULT.changed(["max_split_size_mb:32"]))

    assert worse.peak_reserved_bytes > run(trace, DEFAULT).peak_reserved_bytes
