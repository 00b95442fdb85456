"""Simulated programs that need a rule which few recordings need; see docs/reference/rules.md."""

import random

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.rules import RULES, Rule, rules, without


def outcome(program: Program) -> str:
    return analyse(program.recording()).verdict.outcome


def random_leak(seed: int, kept: int = 24) -> Program:
    """A few large arrays, kept at random moments: by chance some intervals are long."""
    program, chance = Program(), random.Random(seed)
    times = sorted(chance.random() for _ in range(kept))
    for step in range(600):
        while times and times[0] <= step / 600:
            times.pop(0)
            program.alloc(10, 100_000)
        program.temporary(20, 1_000_000)
        program.wait(1_000_000)
    return program


def test_arrays_that_are_kept_at_random_moments_are_a_leak() -> None:
    found = [outcome(random_leak(seed)) for seed in range(20)]
    with without(RULES.chance):
        strict = [outcome(random_leak(seed)) for seed in range(20)]

    assert found.count("leak") > strict.count("leak")
    assert found.count("leak") >= 17


def memo_that_makes_all_there_is() -> Program:
    """Nearly all keys come in the first tenth of the run, and a few new ones up to its end."""
    program = Program()
    for _ in range(300):
        program.alloc(10, 8_000)
        program.wait(100_000)
    for _ in range(30):
        program.alloc(10, 8_000)
        program.wait(10_000_000)
    return program


def test_a_line_that_makes_all_there_is_is_judged_by_time() -> None:
    assert outcome(memo_that_makes_all_there_is()) != "leak"

    with without(RULES.own_clock):
        assert outcome(memo_that_makes_all_there_is()) == "leak"


def larger_problems() -> Program:
    """Three results of each of ever larger problems replace those of the one before, one by one."""
    program, last = Program(), [0, 0, 0]
    for size in range(1, 101):
        for place in range(3):
            number = program.alloc(10, 30_000 * size)
            program.wait(100_000)
            if size > 1:
                program.free(last[place])
            last[place] = number
        program.temporary(20, 10_000_000)
        program.wait(5_000_000)
    return program


def test_results_of_ever_larger_problems_are_no_leak() -> None:
    assert outcome(larger_problems()) == "stable"

    with without(RULES.fewest_values):
        assert outcome(larger_problems()) == "leak"


def test_each_rule_knows_its_name_its_reason_and_what_switches_it_off() -> None:
    for rule in rules():
        assert getattr(RULES, rule.name) is rule
        assert rule.unit and rule.reason and float(rule) != rule.off
        assert rule.reason[0].islower() or rule.reason.startswith("Python"), rule.reason


def test_a_rule_is_switched_off_as_long_as_asked() -> None:
    rule: Rule = RULES.unevenness

    with pytest.raises(KeyError), without(rule):
        assert rule.off == RULES.unevenness != rule
        raise KeyError

    assert RULES.unevenness is rule


def test_there_are_no_more_rules_than_one_can_read() -> None:
    assert len(rules()) <= 50
