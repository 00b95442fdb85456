"""When the objects of a line were made and how long they lived: a leak, a cache, a ring buffer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.traces import Program, Ring

from tlmem.analysis import analyse
from tlmem.analysis.growth.cohorts import cohorts_of
from tlmem.analysis.lifetimes import NEVER, Lifetimes, lifetimes
from tlmem.analysis.model import Cohorts, Finding
from tlmem.analysis.places import Places

S = 1_000_000_000


def lives_of(objects: list[tuple[int, int]], weight: int = 1, size: int = 100) -> Lifetimes:
    """Objects that are born and die at these times (ns), in order of birth."""
    program = Program(step_ns=0)
    recording = program.recording()
    empty = lifetimes(recording, Places.of(recording))
    born, died = np.array(objects, np.int64).reshape(-1, 2).T
    count = len(born)
    return replace(
        empty,
        born=born,
        died=died,
        size=np.full(count, size),
        weight=np.full(count, weight),
    )


def cohorts(lives: Lifetimes, end_ns: int, **options: Any) -> Cohorts:
    found = cohorts_of(lives, np.arange(len(lives)), end_ns, **options)
    assert found is not None
    return found


def alive(found: Cohorts) -> list[tuple[int | None, ...]]:
    return [row.alive for row in found.rows]


def steps(keeps: Any, count: int = 81) -> list[tuple[int, int]]:
    """An object a nanosecond; ``keeps`` says how long each one lives."""
    return [(step, step + keeps(step)) for step in range(1, count + 1)]


def test_of_a_leak_each_row_keeps_its_share() -> None:
    found = cohorts(lives_of(steps(lambda step: NEVER - 1000 if step % 2 else 1)), 81)

    assert [row.made for row in found.rows] == [11, *[10] * 7]
    for number, row in enumerate(found.rows):
        assert row.alive[:number] == (0,) * number
        assert set(row.alive[number + 1 :]) <= {5, 6}


def test_of_a_warm_up_the_first_row_alone_stays() -> None:
    found = cohorts(lives_of(steps(lambda step: 10**6 if step <= 11 else 0)), 81)

    assert [row.alive[-1] for row in found.rows] == [11, 0, 0, 0, 0, 0, 0, 0]


def test_of_a_ring_buffer_the_last_row_alone_stays() -> None:
    found = cohorts(lives_of(steps(lambda step: 10)), 81)

    assert [row.alive[-1] for row in found.rows] == [0] * 7 + [10]
    assert all(row.alive[number] for number, row in enumerate(found.rows))


def test_the_table_says_what_a_look_at_each_object_says() -> None:
    chance = np.random.default_rng(3)
    born = np.sort(chance.integers(5, 5_000, 700))
    died = np.where(chance.random(700) < 0.3, NEVER, born + chance.integers(0, 3_000, 700))
    lives = lives_of(list(zip(born.tolist(), died.tolist(), strict=True)))
    lives = replace(lives, size=chance.integers(1, 1 << 40, 700))
    found = cohorts(lives, 4_321)

    edges = born[0] + (4_321 - born[0]) * np.arange(9) // 8
    for number, row in enumerate(found.rows):
        first = number == 0
        own = (born > edges[number] - first) & (born <= edges[number + 1])
        assert row.made == own.sum()
        assert row.made_bytes == lives.size[own].sum()
        for column, time_ns in enumerate(edges[1:]):
            there = own & (born <= time_ns) & (died > time_ns)
            assert row.alive[column] == there.sum()
            assert row.alive_bytes[column] == lives.size[there].sum()


def test_without_objects_there_is_no_table() -> None:
    assert cohorts_of(lives_of([]), np.zeros(0, np.int64), 10) is None
    assert cohorts_of(lives_of([(5, 8)]), np.arange(1), 4) is None


@pytest.mark.parametrize(("died", "left"), [(NEVER, 1), (7, 0), (10, 0), (11, 1)])
def test_one_object_is_one_row(died: int, left: int) -> None:
    found = cohorts(lives_of([(5, died)]), 10)

    assert (len(found.rows), len(found.times_s)) == (1, 1)
    assert (found.rows[0].made, found.rows[0].alive) == (1, (left,))


def test_objects_of_one_moment_are_one_row() -> None:
    found = cohorts(lives_of([(5, NEVER)] * 20), 5)

    assert alive(found) == [(20,)]


def test_what_is_made_after_the_judged_moment_does_not_count() -> None:
    found = cohorts(lives_of([(1, NEVER), (2, NEVER), (50, NEVER)]), 10)

    assert sum(row.made or 0 for row in found.rows) == 2


def test_an_object_counts_as_many_times_as_it_stands_for() -> None:
    found = cohorts(lives_of([(1, NEVER), (9, NEVER)], weight=4), 9, parts=1)

    assert found.rows[0].made == 8
    assert found.rows[0].alive_bytes == (800,)
    assert found.thinned == 4


def test_what_a_fold_dropped_is_unknown_and_not_zero() -> None:
    survivors = [(step, NEVER) for step in range(1, 40, 2)]
    found = cohorts(lives_of([*survivors, *((step, NEVER) for step in range(41, 82))]), 81,
                    known_from_ns=41)  # fmt: skip

    assert [row.made for row in found.rows] == [None] * 4 + [10] * 4
    assert found.rows[0].alive[:4] == (None, None, None, 6)
    assert found.rows[1].alive[:4] == (0, None, None, 5)
    assert found.rows[0].alive[-1] == 6


def test_when_all_was_folded_there_is_no_table() -> None:
    assert cohorts_of(lives_of([(1, NEVER)]), np.arange(1), 9, known_from_ns=10) is None


def growing(program: Program) -> Finding:
    found = analyse(program.recording()).findings
    (finding,) = [finding for finding in found if finding.kind == "growing-site"]
    return finding


def test_cohorts_begin_where_the_line_does_and_add_up() -> None:
    program = Program(slowdown=1, now_ns=0)
    program.wait(2 * S)
    for step in range(800):
        program.alloc(10)
        program.temporary(10)
        if step % 2:
            program.temporary(20)
        program.wait(10_000_000)
    finding = growing(program)
    found = finding.cohorts

    assert found is not None
    assert found.rows[0].begin_s == pytest.approx(2.0, abs=0.01)
    assert found.times_s[-1] == pytest.approx(10.0, abs=0.2)
    left = sum(row.alive[-1] or 0 for row in found.rows)
    assert left - finding.count in (0, 1)  # it is judged at a birth: a temporary may be there
    assert [row.end_s for row in found.rows] == list(found.times_s)
    assert found.noun == "array"


def test_of_a_line_that_grows_lately_the_early_rows_fall_to_zero() -> None:
    program = Program()
    for step in range(2_000):
        program.temporary(10)
        program.temporary(20)
        if step > 1_000:
            program.alloc(10)
        program.wait(1_000_000)
    found = growing(program).cohorts

    assert found is not None
    ends = [row.alive[-1] or 0 for row in found.rows]
    assert ends[:3] == [0, 0, 0] and min(ends[5:]) > 100


def test_other_findings_have_no_cohorts() -> None:
    program = Program()
    ring = Ring(program, 30, 50)
    for _ in range(1_000):
        program.alloc(10)
        ring.add()
        program.wait(1_000_000)
    found = analyse(program.recording()).findings

    assert {finding.kind for finding in found if finding.cohorts} == {"growing-site"}
    assert len(found) > 1


def test_values_that_are_replaced_by_longer_ones_have_none() -> None:
    program, held, length = Program(), [], []
    for _ in range(8):
        held.append(program.alloc(10, 4_000))
        length.append(4_000)
    for step in range(480):
        which = step % 8
        length[which] += 4_000
        new = program.alloc(10, length[which])
        program.free(held[which])
        held[which] = new
        program.temporary(90, 4_000)
        program.wait(1_000_000)

    assert growing(program).cohorts is None
