"""Which objects a planner is given: sections against time itself, the part around the peak."""

import numpy as np
import pytest
from support.traces import Program

from tlmem.analysis.lifetimes import NEVER
from tlmem.planning.buffers import (
    PlannedLives,
    around_the_peak,
    memories,
    on_sections,
    planned_lives,
)


def lives_of(*rows: tuple[int, int, int]) -> PlannedLives:
    """Objects of (born, died, size), in order of birth."""
    born, died, size = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return on_sections("host", size, born, died, np.arange(len(rows)))


def random_rows(seed: int, count: int = 40, moments: int = 60) -> list[tuple[int, int, int]]:
    chance = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        born = int(chance.integers(0, moments))
        died = born + int(chance.integers(1, 12))
        rows.append((born, died if chance.random() < 0.9 else NEVER, int(chance.integers(1, 99))))
    return sorted(rows)


def test_sections_say_who_was_alive_together() -> None:
    for seed in range(30):
        rows = random_rows(seed)
        lives = lives_of(*rows)

        together = [a[0] < b[1] and b[0] < a[1] for a in rows for b in rows]
        share = [
            lives.first[a] <= lives.last[b] and lives.first[b] <= lives.last[a]
            for a in range(len(rows))
            for b in range(len(rows))
        ]
        assert share == together, f"seed {seed}"


def test_the_peak_is_the_most_alive_at_any_moment() -> None:
    for seed in range(30):
        rows = random_rows(seed)
        lives = lives_of(*rows)

        alive = [sum(size for born, died, size in rows if born <= t < died) for t in range(80)]
        assert lives.peak_bytes == max(alive), f"seed {seed}"
        assert alive[lives.peak_ns] == max(alive), f"seed {seed}"


def test_what_is_freed_at_the_moment_of_another_birth_is_not_there_with_it() -> None:
    lives = lives_of((0, 5, 10), (5, 9, 10))

    assert lives.peak_bytes == 10
    assert (lives.first.tolist(), lives.last.tolist()) == ([0, 1], [0, 1])


def test_an_object_without_any_time_is_there_in_one_section() -> None:
    lives = lives_of((0, 9, 1), (3, 3, 5), (4, 8, 2))

    assert (lives.first <= lives.last).all()
    assert lives.peak_bytes >= 6


def test_nothing_is_a_plan_of_nothing() -> None:
    recording = Program().recording()

    assert memories(recording) == []
    assert planned_lives(recording).peak_bytes == 0
    assert planned_lives(recording).peak_section == -1


def test_each_memory_is_planned_by_itself() -> None:
    program = Program()
    program.alloc(10, size=100)
    program.alloc(11, size=900, device=16)
    program.alloc(12, size=5000, device=17)
    program.alloc(13, size=7000, device=19)  # no device gave it: it is in another object
    program.alloc(14, size=0, device=16)

    found = memories(program.recording())

    assert [(each.memory, each.peak_bytes, len(each)) for each in found] == [
        ("metal", 5000, 1),
        ("host", 1000, 2),
    ]


def test_folded_objects_count_for_those_that_a_thinned_list_left_out() -> None:
    program = Program()
    program.alloc(10, size=100)
    program.alloc(10, size=100)
    recording = program.recording()
    recording.objects["folded"] = [True, False]
    recording.fold = {"live_stride": 4}

    assert planned_lives(recording).peak_bytes == 500


@pytest.mark.parametrize("most", [5, 12, 39])
def test_the_part_around_the_peak_holds_the_peak(most: int) -> None:
    for seed in range(5):
        lives = lives_of(*random_rows(seed))
        part = around_the_peak(lives, most)

        assert len(part) <= most < len(lives), f"seed {seed}"
        assert not part.is_whole and part.of == 40, f"seed {seed}"
        assert part.peak_bytes == lives.peak_bytes and part.peak_ns == lives.peak_ns, f"seed {seed}"
        placed = np.zeros(len(part.load), np.int64)
        for first, last, size in zip(part.first, part.last, part.size, strict=True):
            placed[first : last + 1] += size
        assert (placed >= part.load).all(), f"seed {seed}"
        assert placed[part.peak_section] == lives.peak_bytes, f"seed {seed}"


def test_of_very_many_at_once_the_smallest_become_one() -> None:
    lives = lives_of(*[(moment, NEVER, 1 + moment) for moment in range(100)])
    part = around_the_peak(lives, 10)

    assert len(part) == 10 and part.merged == 91
    assert part.size.sum() == lives.size.sum() == part.peak_bytes
    assert sorted(part.size.tolist())[:9] == list(range(92, 101))


def test_few_objects_are_planned_as_they_are() -> None:
    lives = lives_of(*random_rows(1))

    assert around_the_peak(lives, 40) is lives and lives.is_whole
