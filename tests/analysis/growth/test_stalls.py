"""A machine that stalls makes no leak of a healthy program, and hides none but at its very end.

Stalls are those of a process that is stopped, in which nothing happens at all, and those of a
program whose turn does not come, while its samples are taken on time.
"""

import random
from collections.abc import Callable

import pytest
from support.traces import Program, Ring

from tlmem.analysis import analyse

STEPS, STEP_NS = 300, 2_000_000
STALLS_NS = (50_000_000, 300_000_000, 800_000_000, 2_000_000_000)
"""The whole program takes 600 ms."""
Step = Callable[[int], None]


def bounded_cache(program: Program) -> Step:
    ring = Ring(program, 10, 60)

    def step(_: int) -> None:
        ring.add()
        program.temporary(20, 16_000)

    return step


def bounded_cache_alone(program: Program) -> Step:
    ring = Ring(program, 10, 60)
    return lambda _: ring.add()


def warm_up(program: Program) -> Step:
    def step(number: int) -> None:
        if number < STEPS / 5:
            program.alloc(10)
            program.native += 30_000
            program.python += 20_000
        program.temporary(20, 16_000)

    return step


def list_emptied_now_and_then(program: Program) -> Step:
    held: list[int] = []

    def step(_: int) -> None:
        held.append(program.alloc(10))
        program.temporary(20, 16_000)
        if len(held) == 50:
            while held:
                program.free(held.pop())

    return step


def one_array_for_another(program: Program) -> Step:
    held: list[int] = []

    def step(_: int) -> None:
        held.append(program.alloc(10, 800_000))
        if len(held) > 1:
            program.free(held.pop(0))

    return step


HEALTHY = [
    bounded_cache,
    bounded_cache_alone,
    warm_up,
    list_emptied_now_and_then,
    one_array_for_another,
]


def stall(program: Program, ns: int, stopped: bool) -> None:
    """Time passes in which the program does nothing; when it is stopped, nor do its samples."""
    if stopped:
        program.stand_still(ns)
    else:
        program.wait(ns)


def run(
    make: Callable[[Program], Step], seed: int, latest: int = STEPS, stopped: bool | None = None
) -> Program:
    """A program with one to four stalls of one length at random, before the step ``latest``.

    They are of the kind that is asked for, or of one of both.
    """
    chance = random.Random(seed)
    program = Program()
    step = make(program)
    stalls = chance.sample(range(latest), chance.randint(1, 4))
    ns, kind = chance.choice(STALLS_NS), chance.random() < 0.5
    stopped = kind if stopped is None else stopped
    for number in range(STEPS):
        step(number)
        program.wait(STEP_NS)
        if number in stalls:
            stall(program, ns, stopped)
    return program


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("make", HEALTHY)
def test_no_stall_makes_a_healthy_program_leak(make: Callable[[Program], Step], seed: int) -> None:
    analysis = analyse(run(make, seed).recording())

    assert analysis.verdict.outcome in ("stable", "cannot-judge")
    assert [found.kind for found in analysis.findings if found.severity != "info"] == []


@pytest.mark.parametrize("seed", range(8))
def test_no_stall_before_the_end_hides_a_leak(seed: int) -> None:
    """One behind the last array looks like a program that has come to an end of its growth."""

    def leak(program: Program) -> Step:
        def step(_: int) -> None:
            program.alloc(10)
            program.temporary(20, 16_000)

        return step

    analysis = analyse(run(leak, seed, latest=STEPS - 30).recording())

    assert analysis.verdict.outcome == "leak"
    assert [f.site.line for f in analysis.findings if f.kind == "growing-site" and f.site] == [10]


@pytest.mark.parametrize("seed", range(8))
def test_no_stall_before_the_end_hides_growth_of_native_memory(seed: int) -> None:
    def leak(program: Program) -> Step:
        def step(_: int) -> None:
            program.native += 20_000
            program.temporary(20, 16_000)

        return step

    program = run(leak, seed, latest=STEPS - 60)

    assert analyse(program.recording()).verdict.outcome == "native"
