"""The rules that end repeated runs are as often wrong as they say, and not more."""

import itertools
import random

import pytest

from tlmem.gate.sequential import (
    ERROR,
    FAIL,
    FAULTY,
    HEALTHY,
    PASS,
    PerCall,
    Runs,
    per_call,
)


def ends(most: int, outcomes: tuple[bool, ...]) -> str:
    """The answer when runs are over or not in this order."""
    rule, over = Runs(most), 0
    for number, was_over in enumerate(outcomes, 1):
        over += was_over
        answer = rule.decide(over, number - over)
        if answer:
            return answer
    return ""


@pytest.mark.parametrize("most", [3, 6, 10])
def test_rates_of_runs_are_exact(most: int) -> None:
    by_hand = {(FAIL, HEALTHY): 0.0, (PASS, FAULTY): 0.0, ("", HEALTHY): 0.0, ("", FAULTY): 0.0}
    for outcomes in itertools.product([True, False], repeat=most):
        answer = ends(most, outcomes)
        for chance in (HEALTHY, FAULTY):
            if (answer, chance) in by_hand:
                over = sum(outcomes)
                by_hand[answer, chance] += chance**over * (1 - chance) ** (most - over)

    rates = Runs(most).rates()

    assert rates.false_alarms == pytest.approx(by_hand[FAIL, HEALTHY])
    assert rates.misses == pytest.approx(by_hand[PASS, FAULTY])
    assert rates.undecided == pytest.approx(max(by_hand["", HEALTHY], by_hand["", FAULTY]))


@pytest.mark.parametrize("most", [3, 5, 8, 20, 100])
def test_both_errors_stay_below_what_is_promised(most: int) -> None:
    rates = Runs(most).rates()

    assert rates.false_alarms <= ERROR and rates.misses <= ERROR


def test_clear_answers_end_early() -> None:
    assert Runs(20).decide(over=2, kept=0) == FAIL
    assert Runs(20).decide(over=0, kept=3) == PASS
    assert Runs(20).decide(over=1, kept=1) == ""


def answer_of(rule: PerCall, kept: list[float], tolerance: float = 16.0) -> str:
    """The answer when runs keep so many bytes, with 100 calls more each time."""
    for number in range(1, len(kept) + 1):
        calls = [100.0 * (n + 1) for n in range(number)]
        answer = rule.decide(calls, kept[:number], tolerance)
        if answer:
            return answer
    return ""


def test_growth_per_call_that_goes_on_is_found() -> None:
    assert answer_of(PerCall(8, 3), [n * 100 * 160.0 for n in range(8)]) == FAIL


@pytest.mark.parametrize(
    "kept",
    [
        [5e6] * 8,
        [5e6 + 100 * n for n in range(8)],
        [1e6, *[9e6] * 7],
        [8e6 - n for n in range(8)],
    ],
    ids=["flat", "below the tolerance", "one step", "falling"],
)
def test_what_does_not_grow_per_call_passes(kept: list[float]) -> None:
    assert answer_of(PerCall(8, 3), kept) == PASS


def test_noise_without_growth_fails_as_seldom_as_promised() -> None:
    noise = random.Random(7)
    rule = PerCall(10, 1)
    runs = 2000

    alarms = sum(
        answer_of(rule, [noise.gauss(0, 1e6) for _ in range(10)], 0.0) == FAIL for _ in range(runs)
    )

    assert alarms <= 2 * ERROR * runs  # 4 standard errors above the promise


def test_growth_well_above_the_noise_is_hardly_missed() -> None:
    noise = random.Random(8)
    rule = PerCall(10, 3)

    found = sum(
        answer_of(rule, [4.0 * 1e5 * n + noise.gauss(0, 1e5) for n in range(10)]) == FAIL
        for _ in range(500)
    )

    assert found >= 495


def test_too_few_runs_cannot_fail_and_say_so() -> None:
    assert not PerCall(5, 3).able
    assert PerCall(6, 3).able


def test_bytes_per_call_are_a_median_slope() -> None:
    assert per_call([1, 2, 3, 4], [10, 20, 30, 400]) == pytest.approx(70, abs=60)
    assert per_call([1, 2, 3], [5, 5, 5]) == 0.0
