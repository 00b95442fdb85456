"""Budgets of growth, on programs whose clock is the test's own.

How fast a real program grows depends on the machine that runs it, and how evenly on what else that
machine does. See also: tests/gate/test_check.py, budgets of real programs.
"""

import functools

import pytest
from support import sampled
from support.sampled import LINE, OTHER, Sampled
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.gate.budgets import from_words
from tlmem.gate.decision import OVER, PASS, UNKNOWN, UNSURE, BudgetResult, judge
from tlmem.gate.inputs import Subject
from tlmem.report.summary import Process, Summary

STEPS, STEP_NS, KEPT_BYTES = 300, 2_000_000, 4_000
"""0.6 s in all, in which 2 MB/s are kept."""
STALL_NS = 800_000_000
STALLS = [(), (3,), (50,), (150,), (100, 200), (290,)]
"""Steps in which the machine does something else for longer than the whole program takes."""


@functools.cache
def subject(
    kept: int = 0, native: int = 0, stalls: tuple[int, ...] = (), steps: int = STEPS
) -> Subject:
    """A program of which each step keeps an array of ``kept`` bytes, and ``native`` other ones."""
    program = Program(slowdown=1)
    for step in range(steps):
        program.mark("epoch", step)
        program.temporary(20, 16_000)
        if kept:
            program.alloc(10, kept)
        program.native += native
        program.wait(STEP_NS + STALL_NS * (step in stalls))
    recording = program.recording()
    return Subject(Summary((Process(recording, analyse(recording)),)))


def judged(subject: Subject, budget: str) -> BudgetResult:
    """What becomes of one budget."""
    return judge(subject, from_words([budget])).rows[0]


@pytest.mark.parametrize(
    "budget, state",
    [
        ("tracked-growth=1 kB/s", OVER),
        ("tracked-growth=1.8 MB/s", OVER),
        ("tracked-growth=2.1 MB/s", PASS),
        ("tracked-growth=1 GB/s", PASS),
        ("tracked-growth=400 objects/s", OVER),
        ("tracked-growth=600 objects/s", PASS),
        ("tracked-growth=500 kB", OVER),
        ("tracked-growth=1 MB", PASS),
        ("resident-growth=1 GB/s", PASS),
        ("native-growth=1 kB/s", PASS),
    ],
)
def test_growth_of_arrays_is_held_against_its_budget(budget: str, state: str) -> None:
    assert judged(subject(kept=KEPT_BYTES), budget).state == state


@pytest.mark.parametrize("budget", ["native-growth=0 B/s", "python-growth=0 B/s"])
def test_a_machine_that_stands_still_near_the_end_leaves_enough_to_judge(budget: str) -> None:
    program = Program(slowdown=1)
    for step in range(STEPS):
        program.temporary(20, 16_000)
        program.wait(STEP_NS)
        if step == 290:
            program.stand_still(4 * STALL_NS)
    recording = program.recording()
    stalled = Subject(Summary((Process(recording, analyse(recording)),)))

    assert judged(stalled, budget).state == PASS


@pytest.mark.parametrize(
    "budget, state",
    [
        ("native-growth=40 MB/s", OVER),
        ("native-growth=60 MB/s", PASS),
        ("native-growth=10 MB", OVER),
        ("native-growth=30 MB", PASS),
        ("resident-growth=40 MB/s", OVER),
        ("resident-growth=60 MB/s", PASS),
        ("tracked-growth=1 kB/s", PASS),
    ],
)
def test_growth_of_native_memory_is_held_against_its_budget(budget: str, state: str) -> None:
    assert judged(subject(native=100_000), budget).state == state


@pytest.mark.parametrize("stalls", STALLS, ids=str)
def test_growth_per_step_is_the_same_however_long_the_machine_stalls(
    stalls: tuple[int, ...],
) -> None:
    found = subject(kept=KEPT_BYTES, stalls=stalls)

    assert judged(found, f"tracked-growth={KEPT_BYTES - 1} B per epoch").state == OVER
    assert judged(found, f"tracked-growth={KEPT_BYTES} B per epoch").state == PASS
    assert judged(found, "verdict=stable").state == OVER


@pytest.mark.parametrize("metric", ["tracked", "resident", "native"])
@pytest.mark.parametrize("stalls", STALLS[1:], ids=str)
def test_a_machine_that_stalls_makes_no_rate_too_high(stalls: tuple[int, ...], metric: str) -> None:
    """It is 2 MB/s at most; the rise has gaps, so below that it may be told or not."""
    found = subject(kept=KEPT_BYTES, stalls=stalls)

    assert judged(found, f"{metric}-growth=2.1 MB/s").state in (PASS, UNSURE)
    assert judged(found, f"{metric}-growth=1 GB/s").state == PASS
    assert judged(subject(stalls=stalls), f"{metric}-growth=1 kB/s").state == PASS


def test_a_buffer_that_is_made_once_is_no_rate_but_a_growth() -> None:
    program = Program(slowdown=1)
    for step in range(STEPS):
        program.temporary(20, 16_000)
        program.native += 20_000_000 * (step == 200)
        program.wait(STEP_NS)
    recording = program.recording()
    found = Subject(Summary((Process(recording, analyse(recording)),)))

    assert judged(found, "native-growth=1 kB/s").state in (PASS, UNSURE)
    assert judged(found, "native-growth=5 MB").state == OVER


@pytest.mark.parametrize("native, state", [(0, PASS), (2_000, UNSURE)])
@pytest.mark.parametrize("stops", [(150, 200, 250), (110, 145, 180, 240, 265)], ids=str)
def test_a_machine_that_stops_again_and_again_leaves_enough_for_a_rate(
    stops: tuple[int, ...], native: int, state: str
) -> None:
    """All samples stand in a few short stretches of the run, with nothing in between."""
    program = Program(slowdown=1)
    for step in range(STEPS):
        program.temporary(20, 16_000)
        program.native += native
        program.wait(STEP_NS)
        if step in stops:
            program.now_ns += STALL_NS
            program.sample()
    recording = program.recording()
    found = Subject(Summary((Process(recording, analyse(recording)),)))

    assert judged(found, "native-growth=1 B/s").state == state
    assert judged(found, "native-growth=1 GB/s").state == PASS


def test_no_rate_is_told_of_few_samples() -> None:
    found = judged(subject(kept=KEPT_BYTES, steps=20), "resident-growth=1 GB/s")

    assert found.state == UNKNOWN
    assert "record for longer" in found.sentence


@pytest.mark.parametrize(
    "budgets, code",
    [
        ([], 3),
        (["verdict=stable"], 3),
        (["tracked-growth=1 GB/s"], 3),
        (["leaks=1 GB"], 3),
        (["peak=1 GB", "tracked-growth=1 GB"], 3),
        (["peak=1 GB", "live-at-end=1 GB", "allocated=1 GB", "misuse=0"], 0),
        (["peak=1 MB"], 1),
    ],
)
def test_a_run_that_is_too_short_for_a_verdict_has_a_peak(budgets: list[str], code: int) -> None:
    short = subject(kept=20_000, steps=150)

    assert judge(short, from_words(budgets)).exit_code == code


def test_garbage_that_is_collected_late_is_no_growth_in_a_short_run() -> None:
    """Each collection leaves a little more, as it comes later after the last cycle was made."""
    program = Program(slowdown=1)
    garbage: list[int] = []
    for step in range(STEPS):
        garbage += [program.alloc(20, 4_000) for _ in range(3)]
        program.wait(STEP_NS)
        if step % 10 == 9:
            left = 3 * step // 10
            for number in garbage[: len(garbage) - left]:
                program.free(number)
            garbage = garbage[len(garbage) - left :]
    recording = program.recording()
    found = Subject(Summary((Process(recording, analyse(recording)),)))

    assert found.verdict.outcome != "leak"
    for budget in ("tracked-growth=0 B/s", "resident-growth=0 B/s"):
        assert judged(found, budget).state in (PASS, UNSURE)


@pytest.mark.parametrize("modules, state", [(1, PASS), (0, OVER)])
def test_what_modules_take_that_a_program_imports_all_along_is_no_growth(
    modules: int, state: str
) -> None:
    program = Program(slowdown=1)
    for _ in range(STEPS):
        program.temporary(20, 16_000)
        program.python += 100_000
        program.modules += modules
        program.wait(STEP_NS * 10)
    recording = program.recording()
    found = Subject(Summary((Process(recording, analyse(recording)),)))

    assert judged(found, "python-growth=0 B/s").state == state


@pytest.mark.parametrize("leak, state", [(0, UNSURE), (1_000, OVER)])
def test_results_that_are_joined_and_freed_are_no_growth(leak: int, state: str) -> None:
    program = Program()
    results = []
    for _ in range(STEPS):
        results.append(program.alloc(10, 20_000))
        program.temporary(20, 60_000)
        if leak:
            program.alloc(30, leak)
        program.wait(STEP_NS * 10)
    joined = program.alloc(12, STEPS * 20_000)
    for number in [*results, joined]:
        program.free(number)
    recording = program.recording()
    found = Subject(Summary((Process(recording, analyse(recording)),)))

    assert judged(found, "tracked-growth=0 B/s").state == state


@functools.cache
def with_heap(leaks: bool = True) -> Subject:
    """4 s of a program that keeps 10 MB/s of native memory from one line, 20 kB an epoch."""
    program = Sampled()
    for step in range(sampled.STEPS):
        program.mark("epoch", step)
        if leaks:
            program.native += 20_000
            program.keep(LINE, 20_000)
        program.keep(OTHER, 50_000, steps=5)
        program.wait(sampled.STEP_NS)
    recording = program.recording()
    return Subject(Summary((Process(recording, analyse(recording)),)))


@pytest.mark.parametrize(
    "budget, state",
    [
        ("native-growth@program.py:7=5 MB/s", OVER),
        ("native-growth@program.py:7=20 MB/s", PASS),
        ("native-growth@program.py:7=10 kB per epoch", OVER),
        ("native-growth@program.py:7=40 kB per epoch", PASS),
        ("native-growth@program.py:7=5 MB", OVER),
        ("native-growth@program.py:7=80 MB", PASS),
        ("native-growth@work=5 MB/s", OVER),
        ("native-growth@program.py:9=1 MB/s", PASS),
        ("native-growth@other.py=1 MB/s", PASS),
        ("python-growth@program.py:7=1 MB/s", PASS),
    ],
)
def test_growth_of_a_line_outside_arrays_has_a_budget(budget: str, state: str) -> None:
    assert judged(with_heap(), budget).state == state


def test_a_line_without_a_sample_is_not_surely_below_a_small_budget() -> None:
    assert judged(with_heap(False), "native-growth@program.py:7=1 kB/s").state == UNSURE


def test_without_samples_growth_of_a_line_is_not_known() -> None:
    plain = subject()
    plain.processes[0].recording.heap_sampled = False

    found = judged(plain, "native-growth@program.py:7=1 kB/s")

    assert found.state == UNKNOWN
    assert "--heap" in found.sentence
