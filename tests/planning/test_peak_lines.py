"""Who stands at the peak, and whose shorter lives would lower it."""

import numpy as np
import pytest
from support.traces import Program

from tlmem.analysis.places import Places
from tlmem.events import HolderKind
from tlmem.planning.buffers import planned_lives
from tlmem.planning.peak_lines import BY_BIRTH, BY_OWNERSHIP, PeakLine, last_uses, peak_lines

MODEL, BATCH, WORK = 3, 12, 20


def lines_of(program: Program, most: int = 20) -> list[PeakLine]:
    recording = program.recording()
    return peak_lines(recording, Places.of(recording), planned_lives(recording), most)


def loop(program: Program, steps: int = 5) -> None:
    """A model of 1000 bytes for ever; in each step a batch of 500 that outlives work of 200."""
    program.alloc(MODEL, size=1000)
    for _ in range(steps):
        batch = program.alloc(BATCH, size=500)
        program.temporary(WORK, size=50)
        program.temporary(WORK, size=200)
        program.free(batch)


def test_lines_at_the_peak_come_largest_first() -> None:
    program = Program()
    loop(program)
    found = lines_of(program)

    assert [(line.site.line, line.count, line.bytes) for line in found] == [
        (MODEL, 1, 1000),
        (BATCH, 1, 500),
        (WORK, 1, 200),
    ]


def test_a_life_that_ends_at_once_lowers_every_peak_of_a_loop() -> None:
    program = Program()
    loop(program)
    lowered = {line.site.line: line.lowered_bytes for line in lines_of(program)}

    # Without the model from its second section on; batches gone before the work of 200 is made.
    assert lowered == {MODEL: 1000 + 500 + 50, BATCH: 1000 + 500 + 50, WORK: 1700}


def test_times_are_told_from_the_peak() -> None:
    program = Program(slowdown=1, step_ns=1000)
    program.alloc(MODEL, size=10)
    batch = program.alloc(BATCH, size=20)
    program.free(batch)
    model, *_ = lines = lines_of(program)

    assert [line.site.line for line in lines] == [BATCH, MODEL]
    assert lines[0].age_ns == 0 and lines[0].stays_ns == 100
    assert lines[1].age_ns == 1000 and lines[1].stays_ns is None
    assert model.known_by == BY_BIRTH and model.idle_ns is None


def test_objects_of_the_runtime_end_with_their_last_use() -> None:
    program = Program(step_ns=1000)
    idle = program.alloc(BATCH, size=500, device=16)
    held = program.hold(idle, HolderKind.SCOPE, "step", BATCH)
    program.alloc(WORK, size=100, device=16)
    reader = program.hold(idle, HolderKind.HANDLE, "reader", WORK)
    program.let_go(reader, WORK)
    used_until = program.now_ns
    program.free(program.alloc(WORK, size=1, device=16))
    program.alloc(WORK, size=300, device=16)
    program.let_go(held, BATCH)
    program.free(idle)
    (line, *_) = lines_of(program)

    assert (line.site.line, line.known_by) == (BATCH, BY_OWNERSHIP)
    assert line.idle_ns == program.died[idle] - used_until
    # The reader lets go in the section in which the work of 1 byte is made: there are 601 bytes.
    assert line.lowered_bytes == 601


def test_the_last_giving_back_is_no_use_but_for_what_is_never_freed() -> None:
    program = Program()
    freed, kept = (program.alloc(BATCH, size=500, device=16) for _ in range(2))
    rows = [program.hold(number, HolderKind.HANDLE, "x", WORK) for number in (freed, kept)]
    taken = [row[4] for row in program.ledger]
    for row in rows:
        program.let_go(row, WORK)
    given_back = program.now_ns
    program.free(freed)
    recording = program.recording()
    lives = planned_lives(recording)

    uses = last_uses(recording, lives, np.ones(2, bool))

    assert uses.tolist() == [taken[0], given_back]


def test_an_array_has_no_use_that_is_known() -> None:
    program = Program()
    program.alloc(BATCH)
    recording = program.recording()

    assert last_uses(recording, planned_lives(recording), np.ones(1, bool)).tolist() == [-1]


def test_only_so_many_lines_are_looked_at() -> None:
    program = Program()
    for line in range(30):
        program.alloc(line, size=100 + line)

    assert [line.site.line for line in lines_of(program, 3)] == [29, 28, 27]


def test_a_line_that_is_not_at_the_peak_is_not_told() -> None:
    program = Program()
    program.temporary(WORK, size=10)
    program.alloc(MODEL, size=20)

    assert [line.site.line for line in lines_of(program)] == [MODEL]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_lowered_is_the_peak_of_the_program_with_those_lives(seed: int) -> None:
    chance = np.random.default_rng(seed)
    program = Program()
    alive: list[int] = []
    for _ in range(60):
        if alive and chance.random() < 0.5:
            program.free(alive.pop(int(chance.integers(len(alive)))))
        else:
            size = int(chance.integers(1, 100))
            alive.append(program.alloc(int(chance.integers(1, 4)), size=size))
    recording = program.recording()
    lives = planned_lives(recording)

    for line in peak_lines(recording, Places.of(recording), lives):
        mine = np.array([program.site_of(line.site.line) == site for site in program.site])
        last = np.where(mine, lives.first, lives.last)
        sections = range(len(lives.load))
        load = [lives.size[(lives.first <= at) & (last >= at)].sum() for at in sections]
        assert line.lowered_bytes == max(load)


def test_nothing_stands_at_no_peak() -> None:
    assert lines_of(Program()) == []
