"""Growth that the live count of a line does not show, and healthy programs that look like it."""

from collections import deque

import numpy as np
import pytest
from support.traces import Program

from tlmem.analysis import analyse

MS = 1_000_000


def verdict(program: Program) -> str:
    return analyse(program.recording()).verdict.outcome


def blamed(program: Program) -> list[int]:
    findings = analyse(program.recording()).findings
    return sorted(found.site.line for found in findings if found.kind == "growing-site")


def work(program: Program, ms: float = 1.0) -> None:
    """Something that other lines do."""
    program.temporary(90, 4_000)
    program.wait(round(ms * MS))


@pytest.mark.parametrize("values, size, ms", [(8, 4_000, 1), (40, 800, 2), (12, 18_000, 5)])
def test_values_that_are_replaced_by_longer_ones_are_a_leak(values, size, ms) -> None:
    program, held, length = Program(), [], []
    for _ in range(values):
        held.append(program.alloc(10, size))
        length.append(size)
    for step in range(60 * values):
        which = step % values
        length[which] += size
        new = program.alloc(10, length[which])
        program.free(held[which])
        held[which] = new
        work(program, ms)

    assert blamed(program) == [10]


@pytest.mark.parametrize("values", [8, 40])
def test_values_that_are_replaced_by_others_of_any_size_are_none(values) -> None:
    program, chance = Program(), np.random.default_rng(values)
    held = [program.alloc(10, 200_000) for _ in range(values)]
    for step in range(60 * values):
        new = program.alloc(10, int(chance.integers(50_000, 400_000)))
        program.free(held[step % values])
        held[step % values] = new
        work(program)

    assert verdict(program) == "stable"


def test_a_cache_whose_values_become_larger_only_while_it_warms_up_is_healthy() -> None:
    program = Program()
    held = deque(program.alloc(10, 1_000) for _ in range(20))
    for step in range(1_200):
        held.append(program.alloc(10, min(200_000, 1_000 * (step + 1))))
        program.free(held.popleft())
        work(program)

    assert verdict(program) == "stable"


@pytest.mark.parametrize(
    "arrived, freed, flushes, ms", [(500, 350, 10, 0.2), (50, 40, 12, 2), (15, 14, 60, 1)]
)
def test_troughs_that_rise_are_a_leak(arrived, freed, flushes, ms) -> None:
    program, held = Program(), deque()
    for _ in range(flushes):
        for _ in range(arrived):
            held.append(program.alloc(10, 20_000))
            work(program, ms)
        for _ in range(freed):
            program.free(held.popleft())
    for _ in range(arrived // 2):
        held.append(program.alloc(10, 20_000))
        work(program, ms)

    assert blamed(program) == [10]


@pytest.mark.parametrize("seed", range(6))
def test_flushes_of_any_size_to_any_level_are_healthy(seed) -> None:
    program, held, chance = Program(), deque(), np.random.default_rng(seed)
    for _ in range(12):
        for _ in range(int(chance.integers(60, 140))):
            held.append(program.alloc(10, 20_000))
            work(program)
        while len(held) > int(chance.integers(0, 40)):
            program.free(held.popleft())

    assert verdict(program) == "stable"


@pytest.mark.parametrize("ring, every, ms", [(1_000, 8, 1), (300, 20, 2), (2_000, 3, 0.5)])
def test_a_leak_beside_a_ring_at_the_same_line_is_found(ring, every, ms) -> None:
    program, held = Program(), deque()
    for step in range(6 * ring):
        number = program.alloc(10, 5_000)
        if step % every:
            held.append(number)
        if len(held) > ring:
            program.free(held.popleft())
        if step % 4 == 0:
            work(program, ms)

    assert blamed(program) == [10]


@pytest.mark.parametrize("entries", [150, 400])
def test_a_full_cache_that_evicts_what_is_used_least_is_healthy(entries) -> None:
    """More and more entries stay for good, each in place of one that comes and goes."""
    program, popular, others = Program(), 0, deque()
    for step in range(20 * entries):
        if popular + len(others) == entries:
            program.free(others.popleft())
        number = program.alloc(10, 5_000)
        if step % 25 == 0:
            popular += 1
        else:
            others.append(number)
        work(program)

    assert verdict(program) == "stable"


@pytest.mark.parametrize("full_at", [0.4, 0.67, 0.8])
@pytest.mark.parametrize("leaks", [False, True])
def test_a_full_cache_that_evicts_at_random_is_healthy(full_at, leaks) -> None:
    """It evicts old entries less and less often; what leaks beside it stays."""
    births, chance = 2_400, np.random.default_rng(3)
    entries, program, held = int(full_at * births), Program(), []
    for step in range(births):
        if len(held) == entries:
            program.free(held.pop(int(chance.integers(entries))))
        held.append(program.alloc(10, 5_000))
        if leaks and step % 10 == 0:
            program.alloc(10, 5_000)
        work(program)

    assert verdict(program) == ("leak" if leaks else "stable")


@pytest.mark.parametrize("steps", [5_500, 9_000])
@pytest.mark.parametrize("leaks", [False, True])
def test_buckets_that_are_emptied_when_full_are_healthy_once_fewer_wait(
    leaks: bool, steps: int
) -> None:
    """All fill at one pace, so that many are full at about the same time."""
    program, chance = Program(), np.random.default_rng(1)
    waiting: list[list[int]] = [[] for _ in range(384)]
    for step in range(steps):
        bucket = waiting[int(chance.integers(len(waiting)))]
        bucket.append(program.alloc(10, 5_000))
        if len(bucket) == 16:
            for number in bucket:
                program.free(number)
            bucket.clear()
        if leaks and step % 5 == 0:
            program.alloc(10, 5_000)
        work(program)

    assert verdict(program) == ("leak" if leaks else "stable")


def test_what_a_loop_keeps_at_its_begin_beside_a_ring_is_healthy() -> None:
    program, held = Program(), deque()
    for step in range(6_000):
        number = program.alloc(10, 5_000)
        if step > 1_500 or step % 8:
            held.append(number)
        if len(held) > 500:
            program.free(held.popleft())
        work(program)

    assert verdict(program) == "stable"


def test_sessions_of_any_length_are_healthy() -> None:
    program, chance = Program(), np.random.default_rng(1)
    ends: list[tuple[int, int]] = []
    for step in range(6_000):
        ends.append((step + int(chance.exponential(150)), program.alloc(10, 5_000)))
        for over in [entry for entry in ends if entry[0] <= step]:
            program.free(over[1])
            ends.remove(over)
        work(program)

    assert verdict(program) == "stable"


@pytest.mark.parametrize(
    "lines, each, size", [(6, 9, 1_000_000), (9, 6, 400_000), (4, 8, 8_000_000)]
)
def test_large_arrays_of_several_lines_grow_together(lines, each, size) -> None:
    program = Program()
    for _ in range(each):
        for line in range(lines):
            program.alloc(10 + line, size)
            for _ in range(10):
                work(program, 7)

    assert blamed(program) == [10 + line for line in range(lines)]


def test_a_model_of_large_arrays_of_several_lines_is_healthy() -> None:
    program = Program()
    for layer in range(9):
        for line in range(6):
            program.alloc(10 + line, 1_000_000 + layer)
    for _ in range(500):
        program.temporary(30, 1_000_000)
        work(program, 7)

    assert verdict(program) == "stable"


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize("comes, outcome", [(192, "leak"), (576, "leak"), (500, "stable")])
def test_a_small_cache_that_is_joined_with_what_comes_is_a_leak(
    layers: int, comes: int, outcome: str
) -> None:
    """Keys, or queries, keys and values in one, come to it; values of a problem that grows do not.

    In all there are less than ``least_bytes_of_values``.
    """
    program = Program()
    held: dict[int, int] = {}
    for step in range(700):
        for layer in range(layers):
            new = program.alloc(11, comes)
            joined = program.alloc(10, 192 * (step + 1))
            if layer in held:
                program.free(held[layer])
            held[layer] = joined
            program.free(new)
            program.temporary(12, 4_000)
        program.wait(500_000)
    found = analyse(program.recording())

    assert found.verdict.outcome == outcome
    growing = [each.site.line for each in found.findings if each.kind == "growing-site"]
    assert growing == ([10] if outcome == "leak" else [])
    assert [each for each in found.findings if each.kind == "growing-array"] == []


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("comes, outcome", [(3_200, "leak"), (3_000, "stable")])
def test_a_frame_of_few_columns_that_is_joined_with_what_comes_is_a_leak(
    columns: int, comes: int, outcome: str
) -> None:
    """All columns are joined before the former ones go, as ``pandas.concat`` does it."""
    program = Program()
    held: list[int] = []
    for step in range(1, 441):
        batch = [program.alloc(11, comes) for _ in range(columns)]
        joined = [program.alloc(10, 3_200 * step) for _ in range(columns)]
        for each in [*held, *batch]:
            program.free(each)
        held = joined
        program.temporary(12, 4_000)
        program.wait(8_000_000)
    found = analyse(program.recording())

    assert found.verdict.outcome == outcome
    growing = [each.count for each in found.findings if each.kind == "growing-site"]
    assert growing == ([columns] if outcome == "leak" else [])
    if outcome == "stable":
        assert f"Each of {columns} arrays allocated at" in found.verdict.sentence
        assert f"to {columns * 440 * 3.2 / 1000:.2f} MB together" in found.verdict.sentence


@pytest.mark.parametrize("joins, outcome", [(600, "leak"), (200, "cannot-judge")])
def test_in_a_short_run_each_join_counts_as_an_object_that_is_kept(
    joins: int, outcome: str
) -> None:
    program = Program(slowdown=1)
    joined = program.alloc(10, 4_000)
    for step in range(2, joins):
        new = program.alloc(11, 4_000)
        before, joined = joined, program.alloc(10, 4_000 * step)
        program.free(before)
        program.free(new)
        program.temporary(12, 4_000)
        program.wait(1_000_000)
    verdict = analyse(program.recording()).verdict

    assert verdict.outcome == outcome
    assert "1 array " in verdict.sentence or "1 of " in verdict.sentence


@pytest.mark.parametrize("at_once", [False, True])
def test_more_and_more_holders_each_with_a_new_object_are_no_pass(at_once: bool) -> None:
    """Subscribers that are added and never removed, each with a copy of the last frame.

    Args:
        at_once: whether all former copies are freed when all new ones are there.
    """
    program = Program(slowdown=1)
    held: list[int] = []
    for _ in range(300):
        former = held
        held = [program.alloc(10, 8_000) for _ in held] if at_once else renew(program, held)
        for number in former if at_once else []:
            program.free(number)
        held.append(program.alloc(10, 8_000))
        work(program, 10)
    found = analyse(program.recording())

    assert found.verdict.outcome == "cannot-judge"
    (finding,) = [each for each in found.findings if each.kind == "more-at-a-time"]
    assert (finding.site.line, finding.count) == (10, 300)
    assert "300 arrays (2.40 MB) allocated at program.py:10 are alive" in found.verdict.sentence
    assert blamed(program) == []


def renew(program: Program, held: list[int]) -> list[int]:
    """Each object in another one's place."""
    new = []
    for number in held:
        new.append(program.alloc(10, 8_000))
        program.free(number)
    return new


def test_as_many_holders_as_before_each_with_a_new_object_are_healthy() -> None:
    program = Program(slowdown=1)
    held: list[int] = []
    for step in range(300):
        held = renew(program, held)
        if step < 60:
            held.append(program.alloc(10, 8_000))
        work(program, 10)

    assert verdict(program) == "stable"


def test_steps_that_make_more_and_more_and_free_it_all_are_healthy() -> None:
    """A curriculum: sequences become longer, and with them what a step keeps until its end."""
    program = Program(slowdown=1)
    for step in range(300):
        for number in [program.alloc(10, 8_000) for _ in range(step)]:
            program.free(number)
        work(program, 10)

    assert verdict(program) == "stable"


def test_sessions_that_live_for_a_good_part_of_the_run_are_healthy() -> None:
    program, alive = Program(slowdown=1), deque()
    for step in range(800):
        alive.append(program.alloc(10, 8_000))
        if step >= 300:
            program.free(alive.popleft())
        work(program, 10)

    assert verdict(program) == "stable"
