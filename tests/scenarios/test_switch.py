"""Healthy programs go on until there is enough to judge, however evenly the machine runs."""

import pytest
from tlmem.scenarios.programs import switch


class Clock:
    """A clock that goes on by what each step takes."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(switch, "time", made)
    return made


def steps_of(clock: Clock, least: int, step_s: float, stall_at: int = -1) -> int:
    """So many steps are made; one of them takes ten seconds more."""
    made = 0
    for step in switch.long_enough(least):
        assert step == made
        made += 1
        clock.now += step_s + (10 if step == stall_at else 0)
    return made


def test_a_fast_machine_makes_more_steps(clock: Clock) -> None:
    assert steps_of(clock, 100, 0.0005) == pytest.approx(switch.LONG_ENOUGH_S / 0.0005, abs=2)


def test_a_slow_machine_makes_what_is_asked_for(clock: Clock) -> None:
    assert steps_of(clock, 100, 1.0) == 100


def test_a_stall_is_not_taken_for_steps(clock: Clock) -> None:
    even = steps_of(clock, 100, 0.001)

    assert steps_of(clock, 100, 0.001, stall_at=3) >= even - switch.LONGEST_STEP_S / 0.001 - 1


def test_a_fault_makes_exactly_its_steps_and_a_repaired_program_enough(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch, "FIXED", False)
    assert list(switch.repeat(3, fixed=5)) == [0, 1, 2]

    monkeypatch.setattr(switch, "FIXED", True)
    made = 0
    for _ in switch.repeat(3, fixed=5):
        made, clock.now = made + 1, clock.now + 0.001
    assert made == pytest.approx(switch.LONG_ENOUGH_S / 0.001, abs=2)
