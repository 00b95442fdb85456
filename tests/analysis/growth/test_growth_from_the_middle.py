"""Growth that begins in the middle, a line that is the whole program, what stable means."""

import random
import re

import numpy as np
import pytest
from support.traces import Program

from tlmem.analysis import analyse


def grown_lines(program: Program) -> list[int]:
    findings = analyse(program.recording()).findings
    return [f.site.line for f in findings if f.kind == "growing-site" and f.site is not None]


def helper_program(begin: int, stop: int = 2000, cleared: int = 0) -> Program:
    """One line makes temporaries, and from some step on it makes what is kept, too."""
    program, held = Program(), []
    for step in range(2000):
        program.temporary(10)
        program.temporary(20)
        if begin <= step < stop:
            held.append(program.alloc(10))
        if cleared and step % cleared == cleared - 1:
            for number in held:
                program.free(number)
            held.clear()
        program.wait(400_000)
    return program


@pytest.mark.parametrize("begin", [500, 900, 1200])
def test_a_line_that_leaks_from_some_moment_on_is_found(begin: int) -> None:
    program = helper_program(begin)
    finding = analyse(program.recording()).findings[0]

    assert grown_lines(program) == [10]
    assert finding.count == pytest.approx(2000 - begin, rel=0.1)


def test_a_late_leak_is_found_on_a_machine_that_slows_down() -> None:
    program, held = Program(), 0
    for step in range(2000):
        program.temporary(10)
        program.temporary(20)
        if step >= 1000:
            program.alloc(10)
            held += 1
        program.wait(400_000 if step < 1850 else 1_600_000)
    finding = analyse(program.recording()).findings[0]

    assert grown_lines(program) == [10]
    assert finding.count == pytest.approx(held, rel=0.1)


def test_survivors_are_never_more_than_were_made() -> None:
    program = Program()
    for step in range(1500):
        if step < 6 or step >= 600:
            program.alloc(10)
        program.temporary(20)
        program.wait(100_000)
    finding = analyse(program.recording()).findings[0]

    assert finding.evidence.startswith("900 of 900 arrays") and finding.count == 900


def test_a_late_leak_is_counted_and_timed_from_its_begin() -> None:
    program = helper_program(1200)
    finding = analyse(program.recording()).findings[0]

    assert re.search(r" since \d\.\d+ s\.$", finding.evidence)
    assert finding.grew_from_ns == pytest.approx(1200 * 4_000_000, rel=0.1)
    assert finding.slope_bytes_per_s == pytest.approx(8000 / 4e-3, rel=0.1)
    assert finding.slope_low_bytes_per_s > 0.8 * finding.slope_bytes_per_s


def kept_and_freed(wait_ns: int, each_ns: int) -> Program:
    """A line keeps what it makes; after a while it is freed, which takes ``each_ns`` an object."""
    program, held = Program(), []
    for _ in range(500):
        held.append(program.alloc(10))
        program.temporary(20)
        program.wait(100_000)
    program.wait(wait_ns)
    for number in held:
        program.free(number)
        program.wait(each_ns)
    return program


def test_a_leak_whose_objects_take_long_to_free_at_the_end_is_found() -> None:
    assert grown_lines(kept_and_freed(0, 40_000)) == [10]


def test_a_program_that_frees_for_half_of_its_run_is_not_unwinding() -> None:
    """The frontier of a search grows, and then shrinks to nothing."""
    assert grown_lines(kept_and_freed(0, 100_000)) == []


def test_what_is_built_before_a_long_time_without_allocations_does_not_grow() -> None:
    assert grown_lines(kept_and_freed(200_000_000, 0)) == []


@pytest.mark.parametrize("cleared", [450, 700, 950])
def test_a_list_that_is_emptied_in_the_middle_does_not_grow(cleared: int) -> None:
    assert grown_lines(helper_program(0, cleared=cleared)) == []


def test_growth_that_stops_again_is_no_leak() -> None:
    assert grown_lines(helper_program(600, stop=1300)) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_line_that_is_the_whole_program_leaks_at_any_pace(seed: int) -> None:
    program, chance, pace = Program(), random.Random(seed), 2_000_000
    for step in range(2000):
        if step % 250 == 0:
            pace = chance.randrange(500_000, 6_000_000)
        program.alloc(10)
        program.wait(pace)

    assert grown_lines(program) == [10]


def test_what_a_line_that_is_the_whole_program_loads_first_is_no_leak() -> None:
    program = Program()
    for _ in range(500):
        program.alloc(10)
        program.wait(1_000_000)
    program.wait(500_000_000)

    assert grown_lines(program) == []


def native_program(begin: int, steps: int = 600, drop: int = 0) -> Program:
    program, chance = Program(slowdown=1), np.random.default_rng(begin)
    for step in range(steps):
        program.temporary(20)
        program.native += 20_000 * (step >= begin)
        if drop and step == drop:
            program.native = 0
        program.native += chance.normal(scale=2_000)
        program.wait(2_000_000)
    return program


@pytest.mark.parametrize("begin", [0, 270, 330, 390])
def test_native_growth_that_begins_late_is_native_since_then(begin: int) -> None:
    verdict = analyse(native_program(begin).recording()).verdict

    assert verdict.outcome == "native"
    assert verdict.slope_bytes_per_s == pytest.approx(20_000 / 2.011e-3, rel=0.15)
    low, high = verdict.slope_low_bytes_per_s, verdict.slope_high_bytes_per_s
    assert low is not None and high is not None and verdict.slope_bytes_per_s is not None
    assert 0 < low <= verdict.slope_bytes_per_s <= high < 1.5 * verdict.slope_bytes_per_s
    assert ", steadily since " in verdict.sentence and "(95% CI " in verdict.sentence


def test_native_memory_that_was_given_back_once_is_not_judged_by_its_last_rise() -> None:
    assert analyse(native_program(0, drop=330).recording()).verdict.outcome == "stable"


def test_stable_says_what_would_have_been_seen_and_it_is_seen() -> None:
    quiet = analyse(native_program(600).recording()).verdict
    resolution = quiet.resolution_bytes_per_s
    assert quiet.outcome == "stable" and resolution is not None
    program, chance = Program(slowdown=1), np.random.default_rng(600)
    for _ in range(600):
        program.temporary(20)
        program.native += resolution * 2.011e-3 + chance.normal(scale=2_000)
        program.wait(2_000_000)
    grown = analyse(program.recording()).verdict

    assert (
        "Smallest leak this run could have shown: 20 arrays from one line (10 with 100 kB "
        "together), "
    ) in quiet.sentence
    assert grown.outcome == "native"


def test_without_enough_samples_nothing_is_said_of_what_would_have_been_seen() -> None:
    program = Program(sample_every_ns=150_000_000)
    for _ in range(400):
        program.temporary(20)
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.resolution_bytes_per_s is None
