"""``tlmem.plan``: plans are valid, as low as they say, and bad buffers are named."""

import threading

import numpy as np
import pandas as pd
import pytest

import tlmem


def overlaps(rows: np.ndarray, offsets: np.ndarray) -> int:
    """Pairs of buffers (first, last, size, alignment) that share time and bytes; O(n**2)."""
    first, last, size = (rows[:, column] for column in range(3))
    meet = (first[:, None] <= last[None]) & (first[None] <= last[:, None])
    top = offsets + size
    share = (offsets[:, None] < top[None]) & (offsets[None] < top[:, None])
    both = (size > 0)[:, None] & (size > 0)[None]
    return int(np.count_nonzero(np.triu(meet & share & both, 1)))


def lower_bound(rows: np.ndarray) -> int:
    """The most bytes that live at once."""
    starts = rows[:, 0]
    live = (rows[:, 0][None] <= starts[:, None]) & (starts[:, None] <= rows[:, 1][None])
    return int((live * rows[:, 2][None]).sum(axis=1).max(initial=0))


def slot_sharing(rows: np.ndarray) -> int:
    """The sum of slots when each buffer takes the free slot of nearest size, in order of start."""
    slots: list[list[int]] = []
    for first, last, size in sorted(map(tuple, rows[:, :3].tolist()), key=lambda row: row[0]):
        free = [slot for slot in slots if slot[1] < first]
        if free:
            slot = min(free, key=lambda slot: abs(slot[0] - size))
            slot[:] = [max(slot[0], size), last]
        else:
            slots.append([size, last])
    return sum(slot[0] for slot in slots)


def random_rows(random: np.random.Generator, count: int) -> np.ndarray:
    """Buffers of a kind that is chosen at random: sizes, times and alignments of any spread."""
    time, size = int(random.integers(1, 60)), int(2 ** random.integers(1, 30))
    first = random.integers(-time, time, count)
    last = first + random.integers(0, time, count)
    alignment = 2 ** random.integers(0, random.integers(1, 9), count)
    return np.column_stack([first, last, random.integers(0, size, count), alignment])


def check(rows: np.ndarray, made: tlmem.Plan) -> None:
    """A plan keeps every promise."""
    offsets = made.offsets.astype(np.int64)
    assert overlaps(rows, offsets) == 0
    assert not np.any(offsets % rows[:, 3])
    assert made.peak_bytes == (offsets + rows[:, 2]).max(initial=0)
    assert lower_bound(rows) <= made.lower_bound_bytes <= made.peak_bytes


def test_plans_of_random_buffers_keep_their_promises() -> None:
    random = np.random.default_rng(2026)
    for _ in range(5000):
        rows = random_rows(random, int(random.integers(1, 40)))
        made = tlmem.plan(rows)

        check(rows, made)
        if np.all(rows[:, 3] == 1):
            assert made.peak_bytes <= slot_sharing(rows)


def test_a_search_never_makes_a_plan_worse() -> None:
    random = np.random.default_rng(7)
    for _ in range(60):
        rows = random_rows(random, 120)
        quick, searched = tlmem.plan(rows), tlmem.plan(rows, seconds=0.01)

        check(rows, searched)
        assert searched.peak_bytes <= quick.peak_bytes


def cut_into_pieces(random: np.random.Generator, count: int, time: int, height: int) -> np.ndarray:
    """A full rectangle of time and bytes, cut again and again: buffers that fit without a gap."""
    pieces = [(0, time, 0, height)]
    while len(pieces) < count:
        begin, end, low, high = pieces.pop(int(random.integers(len(pieces))))
        if random.random() < 0.5 and end - begin > 1:
            cut = int(random.integers(begin + 1, end))
            pieces += [(begin, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = int(random.integers(low + 1, high))
            pieces += [(begin, end, low, cut), (begin, end, cut, high)]
        else:
            pieces.append((begin, end, low, high))
    return np.array([(begin, end - 1, high - low, 1) for begin, end, low, high in pieces])


@pytest.mark.parametrize("count", [20, 60, 120])
def test_pieces_of_a_full_rectangle_are_put_together_again(count: int) -> None:
    rows = cut_into_pieces(np.random.default_rng(count), count, 200, 1000)

    made = tlmem.plan(rows, seconds=20.0)

    check(rows, made)
    assert (made.peak_bytes, made.proven) == (1000, True)


def test_without_time_the_same_buffers_give_the_same_offsets() -> None:
    rows = random_rows(np.random.default_rng(1), 200)

    assert tlmem.plan(rows).offsets.tolist() == tlmem.plan(rows.copy()).offsets.tolist()


def test_a_search_ends_at_a_peak_that_is_good_enough() -> None:
    rows = cut_into_pieces(np.random.default_rng(5), 100, 100, 4096)
    quick = tlmem.plan(rows)

    made = tlmem.plan(rows, capacity=quick.peak_bytes, seconds=60.0)

    assert made.offsets.tolist() == quick.offsets.tolist()


def test_a_capacity_that_cannot_be_met_gives_the_best_plan() -> None:
    made = tlmem.plan([(0, 1, 8), (1, 2, 8)], capacity=10, seconds=0.05)

    assert (made.peak_bytes, made.lower_bound_bytes, made.proven) == (16, 16, True)


@pytest.mark.parametrize(
    ("buffers", "offsets", "peak"),
    [
        ([], [], 0),
        ([(0, 0, 0)], [0], 0),
        ([(5, 5, 3)], [0], 3),
        ([(0, 1, 4), (2, 3, 4)], [0, 0], 4),
        ([(0, 2, 0), (0, 2, 7), (1, 1, 0)], [0, 0, 0], 7),
        ([(-(2**63), 2**63 - 1, 1)], [0], 1),
    ],
    ids=["none", "empty", "single", "one after another", "zero sizes", "all of time"],
)
def test_small_inputs_have_plain_answers(buffers: list, offsets: list, peak: int) -> None:
    made = tlmem.plan(buffers)

    assert (made.offsets.tolist(), made.peak_bytes, made.proven) == (offsets, peak, True)


def test_rows_may_be_tuples_arrays_or_a_table() -> None:
    rows = random_rows(np.random.default_rng(3), 30)
    table = pd.DataFrame(rows, columns=["first", "last", "size", "alignment"])
    expected = tlmem.plan(rows).offsets.tolist()

    assert tlmem.plan([tuple(row) for row in rows.tolist()]).offsets.tolist() == expected
    assert tlmem.plan(table).offsets.tolist() == expected
    assert tlmem.plan(iter(rows.astype(float).tolist())).offsets.tolist() == expected


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([(0, 1, 8), (3, 2, 8)], "buffer 1 ends at 2, before it begins at 3; swap them."),
        ([(0, 1, 8, 3)], "buffer 0: alignment is 3; give a power of two up to 4,294,967,296."),
        ([(0, 1, 8, 0)], "buffer 0: alignment is 0; give a power of two up to 4,294,967,296."),
        ([(0, 1, -8)], "buffer 0: size is -8; give 0 to 4611686018427387904."),
        ([(0, 1, 2.5)], "buffer 0: size is 2.5, which is not a whole number."),
        ([(0, 1, "8")], "buffer 0: size is '8', which is not a whole number."),
        ([(0, 1)], "buffer 0 has 2 fields; give first, last, size and, if need be, alignment."),
        (
            np.zeros((3, 5), dtype=int),
            "buffers have the shape (3, 5); give (n, 3) or (n, 4): first, last, size and, if need "
            "be, alignment.",
        ),
        (
            [(0, 0, 2**62), (0, 0, 2**62)],
            "buffer 1 of 4611686018427387904 bytes: all sizes together pass 2**62 bytes; no "
            "machine has that much.",
        ),
    ],
)
def test_a_bad_buffer_is_named(buffers, message: str) -> None:
    with pytest.raises(tlmem.BadBuffer) as caught:
        tlmem.plan(buffers)

    assert str(caught.value) == message


def test_many_buffers_are_planned_in_passes() -> None:
    random = np.random.default_rng(11)
    rows = random_rows(random, 5200)
    rows[:, 0] = random.integers(0, 2000, len(rows))
    rows[:, 1] = rows[:, 0] + random.integers(0, 60, len(rows))
    rows[:, 3] = 1

    made = tlmem.plan(rows)

    check(rows, made)
    assert made.peak_bytes < slot_sharing(rows)


def test_a_thread_with_a_small_stack_can_search() -> None:
    rows = cut_into_pieces(np.random.default_rng(20), 400, 400, 2000)
    plans: list[tlmem.Plan] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: plans.append(tlmem.plan(rows, seconds=0.3)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)

    check(rows, plans[0])


def test_a_capacity_beyond_all_memory_and_unlimited_time_are_fine() -> None:
    rows = cut_into_pieces(np.random.default_rng(20), 20, 200, 1000)

    assert tlmem.plan(rows, capacity=2**80, seconds=float("inf")).peak_bytes >= 1000
    assert tlmem.plan(rows, seconds=float("inf")).peak_bytes == 1000


def test_budgets_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="capacity=-1 is not a number of bytes"):
        tlmem.plan([], capacity=-1)
    with pytest.raises(ValueError, match="seconds=-1 is not a time"):
        tlmem.plan([], seconds=-1)
