"""Helpers that many callers share: the path that leaks is found, the others are left alone."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.traces import Program, Ring

from tlmem.analysis import Finding, analyse
from tlmem.analysis.places import Places

HELPER = 4


@dataclass
class CalledProgram(Program):
    """A program whose places are stacks: ``(4, 9)`` is line 4, called from line 9."""

    def site_of(self, stack: Any) -> int:
        return super().site_of(stack if isinstance(stack, tuple) else (stack,))

    def recording(self) -> Any:
        stacks: dict[tuple[int, ...], int] = dict(self.lines)  # type: ignore[arg-type]
        for stack in list(stacks):
            for start in range(1, len(stack)):
                stacks.setdefault(stack[start:], len(stacks) + 2)
        recording = super().recording()
        rows = sorted((number, stack) for stack, number in stacks.items())
        recording.sites = pd.DataFrame(
            {
                "parent": [stacks.get(stack[1:], 0) for _, stack in rows],
                "file": "/home/user/program.py",
                "function": ["work" if len(stack) == 1 else "helper" for _, stack in rows],
                "line": [stack[0] for _, stack in rows],
                "depth": [len(stack) for _, stack in rows],
            },
            index=pd.Index([number for number, _ in rows], name="site"),
        )
        recording.blame_table = pd.Series(recording.sites.index, index=recording.sites.index)
        by_number = dict(rows)
        recording.stack = lambda site: [
            {"file": "/home/user/program.py", "line": line, "function": "work"}
            for line in by_number.get(site, ())
        ]
        return recording


def growing(program: Program) -> list[Finding]:
    found = analyse(program.recording()).findings
    return [finding for finding in found if finding.kind == "growing-site"]


def healthy_steps(
    program: Program, steps: int, leak: tuple[int, ...] | None = None, every: int = 4
) -> None:
    """A model, temporaries and a ring by one helper, and what leaks if there is a leak."""
    for _ in range(2 * steps):
        program.alloc((HELPER, 10))  # type: ignore[arg-type]
    ring = Ring(program, (HELPER, 12), steps // 4)  # type: ignore[arg-type]
    for step in range(steps):
        program.temporary((HELPER, 11))  # type: ignore[arg-type]
        ring.add()
        if leak is not None and step % every == 0:
            program.alloc(leak)  # type: ignore[arg-type]
        program.wait(1_000_000)


@pytest.mark.parametrize("every", [2, 4, 10])
def test_a_path_that_leaks_behind_a_helper_is_found(every: int) -> None:
    program = CalledProgram()
    healthy_steps(program, 800, (HELPER, 13), every)
    found = growing(program)

    assert [finding.site.line for finding in found if finding.site] == [HELPER]
    assert found[0].count == 800 // every
    assert found[0].bytes == 8_000 * found[0].count
    assert [frame.line for frame in found[0].stack] == [HELPER, 13]
    assert "called from program.py:13" in found[0].evidence


def test_a_helper_without_a_leaking_path_is_stable() -> None:
    program = CalledProgram()
    healthy_steps(program, 800)

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("between", [(), (5,), (5, 6)])
def test_a_path_is_told_by_its_third_caller(between: tuple[int, ...]) -> None:
    program = CalledProgram()
    for _ in range(1600):
        program.alloc((HELPER, *between, 10))  # type: ignore[arg-type]
    for _ in range(800):
        program.temporary((HELPER, *between, 11))  # type: ignore[arg-type]
        program.alloc((HELPER, *between, 13))  # type: ignore[arg-type]
        program.wait(1_000_000)
    found = growing(program)

    assert [frame.line for frame in found[0].stack] == [HELPER, *between, 13]


def test_a_line_that_grows_as_a_whole_is_told_once() -> None:
    program = CalledProgram()
    for step in range(600):
        program.alloc((HELPER, 10 + step % 2))  # type: ignore[arg-type]
        program.wait(1_000_000)
    found = growing(program)

    assert [finding.count for finding in found] == [600]
    assert "called from" not in found[0].evidence


def test_a_bounded_cache_whose_users_change_is_stable() -> None:
    program, held = CalledProgram(), [[], []]
    for step in range(1200):
        user = int(step % 1200 < 400 or step % 3 == 0)
        if step >= 400:
            user = 1 if step % 2 else 0
        held[user].append(program.alloc((HELPER, 10 + user)))  # type: ignore[arg-type]
        if step >= 400:
            program.free(held[1].pop(0))
        program.temporary(20)
        program.wait(1_000_000)

    assert growing(program) == []


@pytest.mark.parametrize("paths", [4, 12, 40])
@pytest.mark.parametrize("seed", range(4))
def test_chance_makes_no_path_of_a_bounded_cache_grow(paths: int, seed: int) -> None:
    program, chance, held = CalledProgram(), random.Random(seed), []
    for _ in range(1500):
        held.append(program.alloc((HELPER, 10 + chance.randrange(paths))))  # type: ignore[arg-type]
        if len(held) > 300:
            program.free(held.pop(chance.randrange(len(held))))
        program.wait(1_000_000)

    assert growing(program) == []


def test_places_of_one_line_are_one_caller() -> None:
    program = CalledProgram()
    for stack in [(HELPER, 10, 30), (HELPER, 10, 31), (HELPER, 11, 30)]:
        program.alloc(stack)  # type: ignore[arg-type]
    places = Places.of(program.recording())
    sites = np.array(sorted(program.lines.values()))

    near, callers = places.paths(sites, 1)
    far, _ = places.paths(sites, 2)

    assert near.tolist() == [1, 1, 2]
    assert [[frame.line for frame in path] for path in callers] == [[10], [11]]
    assert far.tolist() == [1, 2, 3]


def test_cohorts_of_a_growing_path_are_those_of_the_path_alone() -> None:
    program = CalledProgram()
    healthy_steps(program, 800, (HELPER, 13))
    (found,) = growing(program)
    made = sum(1 for site in program.site if site == program.lines[(HELPER, 13)])  # type: ignore[index]

    assert found.cohorts is not None
    assert sum(row.made or 0 for row in found.cohorts.rows) == made
    assert sum(row.alive[-1] or 0 for row in found.cohorts.rows) == found.count


# ---- what libraries allocate for one line ----

LIBRARY = "/usr/lib/python3/site-packages/lib.py"


def inside_one_line(program: CalledProgram) -> Any:
    """Its recording, where only the outermost frame of each stack is the user's."""
    recording = program.recording()
    sites = recording.sites
    outermost = {}
    for site in sites.sort_values("depth").index:
        parent = int(sites.at[site, "parent"])
        outermost[site] = outermost.get(parent, site)
    sites["file"] = [
        "/home/user/program.py" if outermost[site] == site else LIBRARY for site in sites.index
    ]
    recording.blame_table = pd.Series([outermost[site] for site in sites.index], sites.index)
    return recording


def test_what_one_library_line_allocates_for_the_user_s_only_line_is_found() -> None:
    program, main = CalledProgram(), 3
    ring = Ring(program, (5, main), 200)  # type: ignore[arg-type]
    for _ in range(2_000):
        program.alloc((4, main))  # type: ignore[arg-type]
    for step in range(800):
        program.temporary((6, main))  # type: ignore[arg-type]
        ring.add()
        if step % 4 == 0:
            program.alloc((7, main))  # type: ignore[arg-type]
        program.wait(1_000_000)
    found = [each for each in analyse(inside_one_line(program)).findings if each.site]
    growing = [each for each in found if each.kind == "growing-site"]

    assert [(each.site.line, each.count) for each in growing if each.site] == [(main, 200)]
    assert ", by helper (lib.py:7), were" in growing[0].evidence


def test_a_stack_is_told_where_one_library_line_serves_all() -> None:
    program, main, shared = CalledProgram(), 3, 9
    ring = Ring(program, (shared, 5, main), 200)  # type: ignore[arg-type]
    for _ in range(2_000):
        program.alloc((shared, 4, main))  # type: ignore[arg-type]
    for step in range(800):
        program.temporary((shared, 6, main))  # type: ignore[arg-type]
        ring.add()
        if step % 4 == 0:
            program.alloc((shared, 7, main))  # type: ignore[arg-type]
        program.wait(1_000_000)
    found = analyse(inside_one_line(program)).findings
    growing = [each for each in found if each.kind == "growing-site"]

    assert [each.count for each in growing] == [200]
    assert "by helper (lib.py:9)" in growing[0].evidence


def test_a_library_that_serves_one_line_and_keeps_a_ring_is_stable() -> None:
    program, main = CalledProgram(), 3
    ring = Ring(program, (9, 5, main), 200)  # type: ignore[arg-type]
    for _ in range(800):
        program.temporary((9, 6, main))  # type: ignore[arg-type]
        ring.add()
        program.wait(1_000_000)

    assert analyse(inside_one_line(program)).verdict.outcome == "stable"


def called_in_turn(sizes: list[int], program: CalledProgram) -> None:
    """A function that frees what it made when it returns, called from one line after another."""
    for number, size in enumerate(sizes):
        kept = []
        for _ in range(size):
            kept.append(program.alloc((HELPER, 10 + number)))  # type: ignore[arg-type]
            program.wait(1_000_000)
        if number < len(sizes) - 1:
            for item in kept:
                program.free(item)


@pytest.mark.parametrize("sizes", [[700, 700], [700, 700, 700], [500, 900], [900, 200, 900]])
def test_the_last_of_several_calls_is_no_leak(sizes: list[int]) -> None:
    program = CalledProgram()
    called_in_turn(sizes, program)

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("first", [10, 100])
def test_a_call_that_keeps_much_more_than_those_before_is_a_leak(first: int) -> None:
    program = CalledProgram()
    called_in_turn([first, 900], program)

    assert [finding.count for finding in growing(program)] == [900]


def test_a_path_that_leaks_while_others_give_back_is_found() -> None:
    program = CalledProgram()
    for _ in range(5):
        kept = []
        for _ in range(200):
            kept.append(program.alloc((HELPER, 10)))  # type: ignore[arg-type]
            program.alloc((HELPER, 11))  # type: ignore[arg-type]
            program.wait(1_000_000)
        for item in kept:
            program.free(item)
    found = growing(program)

    assert [[frame.line for frame in finding.stack] for finding in found] == [[HELPER, 11]]
