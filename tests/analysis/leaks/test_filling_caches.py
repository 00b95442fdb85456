"""A cache over a finite set of keys: ``stable`` once full, mostly ``cannot-judge`` before."""

import random
from collections.abc import Iterable

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.report.explain import explain_block
from tlmem.units import format_bytes

KEYS = 800


def drawn(times: float, seed: int, others: bool = True) -> Analysis:
    """A cache of ``KEYS`` keys, each of which is drawn so many times on average."""
    program, chance, known = Program(), random.Random(seed), set()
    for _ in range(int(KEYS * times)):
        key = chance.randrange(KEYS)
        if key not in known:
            known.add(key)
            program.alloc(10, 8_000)
        if others:
            program.temporary(20, 100_000)
        program.wait(1_000_000)
    return analyse(program.recording())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("times", [2.0, 2.5, 3.0])
def test_a_cache_whose_keys_come_to_an_end_is_no_leak(times: float, seed: int) -> None:
    found = drawn(times, seed)

    assert found.verdict.outcome in ("cannot-judge", "stable")
    if found.verdict.outcome == "cannot-judge":
        assert "A cache whose keys come to an end fills like that" in found.verdict.sentence
        assert [f.severity for f in found.findings if f.kind == "filling-cache"] == ["info"]


@pytest.mark.parametrize("seed", range(3))
def test_a_cache_that_has_seen_few_of_its_keys_is_a_leak_so_far(seed: int) -> None:
    assert drawn(0.5, seed).verdict.outcome == "leak"


def test_what_a_cache_makes_on_the_way_to_an_item_is_no_clock_of_the_program() -> None:
    """Each load makes temporaries at the line of the item; ever fewer loads make ever fewer."""
    program, chance, known = Program(), random.Random(2), set()
    for _ in range(3 * KEYS):
        key = chance.randrange(KEYS)
        if key not in known:
            known.add(key)
            for _ in range(6):
                program.temporary(10, 8_000)
            program.alloc(10, 8_000)
        for _ in range(2):
            program.temporary(20, 8_000)
        program.wait(20_000 * (8 if len(known) > KEYS // 2 else 1))  # a busy machine bends time

    assert analyse(program.recording()).verdict.outcome in ("cannot-judge", "stable")


def test_where_the_line_makes_all_there_is_its_pace_in_time_tells_nothing() -> None:
    """A busy machine slows a program down."""
    program = Program()
    for step in range(600):
        program.alloc(10, 8_000)
        program.wait(500_000 + 5_000 * step)

    assert analyse(program.recording()).verdict.outcome == "leak"


def test_an_even_leak_in_a_dict_is_a_leak() -> None:
    program = Program()
    for _ in range(600):
        program.alloc(10, 8_000)
        program.temporary(20, 100_000)
        program.wait(1_000_000)

    assert analyse(program.recording()).verdict.outcome == "leak"


@pytest.mark.parametrize("used", [1.0, 0.02])
def test_views_of_a_small_part_are_to_be_copied_whether_it_is_a_leak_or_not(used: float) -> None:
    program, chance, known = Program(), random.Random(1), {}
    for _ in range(2 * KEYS):
        key = chance.randrange(KEYS)
        if key not in known:
            known[key] = program.alloc(10, 8_000)
        program.temporary(20, 100_000)
        program.wait(1_000_000)
    steps = [
        ChainStep(StepKind.MODULE, "__main__", "crops"),
        ChainStep(StepKind.DICT, "dict", "[]", len(known)),
        ChainStep(StepKind.VIEW, "numpy.ndarray", "base"),
    ]
    program.snapshot((steps, list(known.values()), used))
    found = analyse(program.recording())
    part = f"use {format_bytes(used * 8_000 * len(known))} of {format_bytes(8_000 * len(known))}"

    assert found.verdict.outcome == "cannot-judge"
    assert (f"{part}: a copy of each part would free the rest." in found.verdict.sentence) == (
        used < 1
    )


ALL_STEPS, LAST_KEY = 2_000, 1_700


def kept_at(
    steps: Iterable[int],
    of: StepKind = StepKind.DICT,
    beside: Iterable[int] = range(ALL_STEPS),
    seen: bool = True,
) -> Analysis:
    """A program of ``ALL_STEPS`` steps that keeps an array in some of them.

    Args:
        steps: those.
        of: the kind of container that a snapshot sees hold them.
        beside: the steps in which other work makes something at another line.
        seen: whether there is a snapshot.
    """
    program, kept, with_work = Program(), [], set(beside)
    keeps = set(steps)
    for step in range(ALL_STEPS):
        if step in keeps:
            program.temporary(10, 8_000)
            kept.append(program.alloc(10, 8_000))
        program.temporary(20 if step in with_work else 30, 1_000)
        program.wait(1_000_000)
    kind = {StepKind.DICT: "dict", StepKind.LIST: "list"}[of]
    chain = [ChainStep(StepKind.MODULE, "__main__", "table"), ChainStep(of, kind, "[]", len(kept))]
    if seen:
        program.snapshot((chain, kept, 1.0))
    return analyse(program.recording())


FILLED = range(0, LAST_KEY, 3)


def test_a_cache_that_was_filled_evenly_for_most_of_the_run_is_full() -> None:
    found = kept_at(FILLED)

    assert found.verdict.outcome == "stable"
    (past,) = (each for each in found.findings if each.kind == "grew-and-kept")
    assert (past.severity, past.count) == ("info", len(FILLED))
    assert past.evidence.endswith("though the same work went on: a cache that is full.")
    explained = explain_block(found.verdict)
    assert "program.py:10: stopped growing while the same work went on" in explained


def test_a_list_has_no_keys_that_come_to_an_end() -> None:
    assert kept_at(FILLED, of=StepKind.LIST).verdict.outcome == "leak"


def test_what_holds_them_must_be_known() -> None:
    assert kept_at(FILLED, seen=False).verdict.outcome == "leak"


def test_an_evaluation_in_each_epoch_is_no_sign_of_a_full_cache() -> None:
    """Nothing is added in the last fifth of each of four epochs, though work of training goes on
    there; and the last evaluation is the end of the run."""
    epoch = ALL_STEPS // 4

    found = kept_at(step for step in range(ALL_STEPS) if step % epoch < 0.8 * epoch)
    assert found.verdict.outcome == "leak"


def test_work_that_begins_when_the_last_key_came_is_other_work() -> None:
    found = kept_at(FILLED, beside=range(LAST_KEY, ALL_STEPS))

    assert found.verdict.outcome == "leak"


@pytest.mark.parametrize("seed", range(20))
def test_a_rare_leak_in_a_dict_is_not_taken_for_a_full_cache(seed: int) -> None:
    """By chance no step is among the last ones; one of 40 keeps something."""
    chance = random.Random(seed)
    steps = [step for step in range(ALL_STEPS) if chance.random() < 1 / 40]

    assert kept_at(steps).verdict.outcome == "leak"
