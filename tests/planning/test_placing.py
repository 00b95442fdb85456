"""Simpler ways to place objects, compared with the same said in the plainest words."""

import numpy as np
import pytest

from tlmem.planning.placing import (
    WAYS,
    best_fit,
    class_bytes,
    linear_scan,
    size_classes,
    slot_sharing,
    without_reuse,
)

Rows = list[tuple[int, int, int]]


def random_rows(seed: int, count: int = 60) -> Rows:
    chance = np.random.default_rng(seed)
    first = np.sort(chance.integers(0, 40, count))
    last = first + chance.integers(0, 8, count)
    size = chance.integers(1, 40, count) * 16
    return list(zip(first.tolist(), last.tolist(), size.tolist(), strict=True))


def columns(rows: Rows) -> list[np.ndarray]:
    return [np.array([row[at] for row in rows], np.int64) for at in range(3)]


def plain_first_fit(rows: Rows) -> int:
    """Places each row in the lowest gap between those alive, all of which are looked at."""
    placed: list[tuple[int, int, int]] = []
    for first, last, size in rows:
        floor = 0
        for at, end in sorted((at, end) for at, end, until in placed if until >= first):
            if at - floor >= size:
                break
            floor = end
        placed.append((floor, floor + size, last))
    return max(end for _, end, _ in placed)


def plain_slots(rows: Rows) -> int:
    slots: list[list[int]] = []
    for first, last, size in rows:
        free = [slot for slot in slots if slot[1] < first]
        if not free:
            slots.append([size, last])
            continue
        slot = min(free, key=lambda each: (abs(each[0] - size), -each[0]))
        slot[:] = [max(slot[0], size), last]
    return sum(slot[0] for slot in slots)


def test_first_fit_is_the_lowest_gap_between_the_living() -> None:
    for seed in range(40):
        rows = random_rows(seed)

        assert linear_scan(*columns(rows)) == plain_first_fit(rows), f"seed {seed}"


def test_slot_sharing_takes_the_nearest_free_slot() -> None:
    for seed in range(40):
        rows = random_rows(seed)

        assert slot_sharing(*columns(rows)) == plain_slots(rows), f"seed {seed}"


def test_slots_by_hand() -> None:
    # A slot of 100 serves 60 next, then 130, which makes it larger.
    assert slot_sharing(*columns([(0, 0, 100), (1, 1, 60), (2, 2, 130)])) == 130
    # 90 and 40 are free: 50 takes the slot of 40, although 90 has room.
    assert slot_sharing(*columns([(0, 0, 90), (0, 0, 40), (1, 1, 50)])) == 140


def test_first_and_best_fit_by_hand() -> None:
    # Gaps of 96 (at 0) and of 32 (at 128): 32 bytes take the first, or the tightest.
    rows = [(0, 0, 96), (0, 9, 32), (0, 0, 32), (0, 9, 32), (1, 9, 32), (1, 9, 96)]

    assert linear_scan(*columns(rows)) == 288
    assert best_fit(*columns(rows)) == 192


def test_what_is_free_at_the_top_is_used_by_what_is_larger() -> None:
    assert linear_scan(*columns([(0, 9, 64), (0, 0, 64), (1, 9, 128)])) == 192


@pytest.mark.parametrize(
    ("size", "rounded"),
    [(1, 64), (64, 64), (65, 128), (256, 256), (257, 320), (320, 320), (321, 384), (512, 512)]
    + [(513, 640), (1 << 20, 1 << 20), ((1 << 20) + 1, (1 << 20) + (1 << 18)), (3 << 40, 3 << 40)],
)
def test_size_classes_are_those_of_the_buffers(size: int, rounded: int) -> None:
    assert class_bytes(np.array([size])).tolist() == [rounded]


def test_a_pool_keeps_what_is_freed_for_its_class() -> None:
    rows = [(0, 0, 100), (1, 1, 120), (2, 2, 1000), (2, 3, 70), (3, 3, 900)]

    # 100 and 120 use one block of 128 after each other, and so do 1000 and 900 one of 1024.
    assert size_classes(*columns(rows)) == 128 + 1024


@pytest.mark.parametrize("way", WAYS)
def test_no_way_needs_less_than_what_is_alive(way: str) -> None:
    for seed in range(20):
        rows = random_rows(seed)
        load = max(sum(s for f, t, s in rows if f <= at <= t) for at in range(50))

        assert load <= WAYS[way](*columns(rows)), f"seed {seed}"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_needs_nothing(way: str) -> None:
    empty = np.zeros(0, np.int64)

    assert WAYS[way](empty, empty, empty) == 0


def test_without_reuse_everything_is_added_up() -> None:
    assert without_reuse(*columns([(0, 0, 5), (1, 1, 6)])) == 11
