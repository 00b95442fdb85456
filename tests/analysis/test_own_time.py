"""The program's own time: on a busy machine it stands still while it is ready to run."""

import numpy as np
import pandas as pd
import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.own_time import Delays, clock_of_run

STEP_NS = 2_000_000
DELAY_NS = 10 * STEP_NS
"""How long a step waits for a processor while the machine is busy."""
BUSY_FROM = 1_930


def told(times: list[float], waited: list[float]) -> Delays:
    return Delays.of(pd.DataFrame({"time_ns": times, "delayed": waited}))


def test_what_was_waited_for_is_left_out() -> None:
    delays = told([0, 100, 200, 300], [5, 5, np.nan, 105])

    assert delays.left_out_of(np.array([0, 100, 200, 300, 400])).tolist() == [-5, 95, 145, 195, 295]


def test_time_does_not_go_back() -> None:
    """A sample is a moment younger than the delay in it."""
    assert told([0, 10, 20], [0, 12, 12]).left_out_of(np.array([0, 10, 20])).tolist() == [0, 0, 8]


@pytest.mark.parametrize(
    "samples",
    [{"time_ns": [0, 100]}, {"time_ns": [0, 100], "delayed": [np.nan, np.nan]}],
)
def test_what_is_not_known_is_not_left_out(samples: dict[str, list[float]]) -> None:
    delays = Delays.of(pd.DataFrame(samples))

    assert delays.left_out_of(np.array([0, 50, 100])).tolist() == [0, 50, 100]


def test_the_clock_of_a_run_goes_slower_while_the_machine_is_busy() -> None:
    moments = np.arange(0, 1_000, 10)
    waited = np.maximum(0, moments - 500) / 2
    run = clock_of_run(moments, 0, 1_000, told(moments.tolist(), waited.tolist()))

    assert run.at(500) == pytest.approx(500)
    assert run.at(990) == pytest.approx(500 + 245, abs=6)


def busy_at_the_end(program: Program, step, is_told: bool = True) -> str:
    """The verdict on steps of which the last ones take eleven times as long."""
    for number in range(2_000):
        step()
        program.wait(STEP_NS)
        if number >= BUSY_FROM:
            program.wait(DELAY_NS)
            program.delayed += DELAY_NS if is_told else 0
    return str(analyse(program.recording()).verdict.outcome)


@pytest.mark.parametrize(("is_told", "outcomes"), [(True, {"python"}), (False, {"stable"})])
def test_python_s_heap_grows_although_the_machine_becomes_busy(
    is_told: bool, outcomes: set[str]
) -> None:
    program = Program(slowdown=1)

    def step() -> None:
        program.python += 100_000

    assert busy_at_the_end(program, step, is_told) in outcomes


def test_a_line_that_makes_all_there_is_grows_although_the_machine_becomes_busy() -> None:
    program = Program(slowdown=1)

    assert busy_at_the_end(program, lambda: program.alloc(10)) == "leak"


def test_a_cache_that_was_full_before_the_machine_became_busy_does_not_grow() -> None:
    program = Program(slowdown=1)

    def step() -> None:
        program.python = min(program.python + 150_000, 100e6)

    assert busy_at_the_end(program, step) == "stable"
