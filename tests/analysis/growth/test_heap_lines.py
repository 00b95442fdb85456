"""Sampled blocks of the heap: which line grows, of which memory, and when that is enough."""

import numpy as np
import pytest
from support.sampled import LINE, OTHER, STEP_NS, STEPS, Sampled
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.growth.heap_lines import is_sure, sampled_growths
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Analysis
from tlmem.analysis.places import Places


def judged(program: Program) -> Analysis:
    """What is said of a program."""
    return analyse(program.recording())


def lines(found: Analysis, kind: str) -> list[int]:
    """The lines that are named."""
    return [each.site.line for each in found.findings if each.kind == kind and each.site]


def test_a_growing_line_is_named_with_its_rate_before_a_larger_one_that_does_not_grow() -> None:
    program = Sampled()
    for step in range(STEPS):
        if step == STEPS // 2:
            for _ in range(30):
                program.keep(OTHER, 2_000_000)
            program.native += 60_000_000
        program.native += 20_000
        program.keep(LINE, 20_000)
        program.wait(STEP_NS)

    found = judged(program)
    (named, *_) = [each for each in found.findings if each.kind == "native-site"]

    assert (found.verdict.outcome, named.site and named.site.line) == ("native", LINE)
    assert named.slope_low_bytes_per_s < 10e6 < named.slope_high_bytes_per_s
    assert "program.py:7" in found.verdict.sentence and "grows evenly" in named.evidence


def test_what_the_allocator_adds_to_blocks_of_python_is_not_native_growth() -> None:
    program = Sampled()
    for _ in range(STEPS):
        program.python_large += 22_000
        program.native += 400
        program.keep(LINE, 22_000, python=True)
        program.wait(STEP_NS)

    found = judged(program)

    assert found.verdict.outcome == "python"
    assert [each.kind for each in found.findings if each.kind.endswith("-growth")] == [
        "python-growth"
    ]
    assert lines(found, "python-site") == [LINE]


@pytest.mark.parametrize("step_bytes", [2_000, 20_000])
def test_the_larger_rise_names_the_kind_and_a_small_one_without_a_line_asks_for_a_finer_rate(
    step_bytes: int,
) -> None:
    program = Sampled()
    for _ in range(STEPS):
        program.python_large += step_bytes
        program.native += step_bytes / 10
        program.wait(STEP_NS)
    verdict = judged(program).verdict

    assert verdict.outcome == "python"
    asks = verdict.sentence.endswith("to be named; record with --heap=32kB.")
    assert asks == (step_bytes * STEPS < 20 * 256_000)


@pytest.mark.parametrize("sampled", [True, False])
def test_native_growth_that_samples_say_is_of_python_is_called_so(sampled: bool) -> None:
    program = Sampled()
    for step in range(STEPS):
        # The C allocator answers later than Python, whose memory comes in large steps.
        program.native += 10_000
        program.keep(LINE, 20_000, python=sampled)
        program.python_large = 0.0 if step % 200 else 20_000_000.0
        program.wait(STEP_NS)

    assert judged(program).verdict.outcome == ("python" if sampled else "native")


def noisy(seed: int, leak: int, steps: int = 0, resident: bool = True) -> Analysis:
    """A line that keeps blocks, for so many steps or for ever, beside memory that varies."""
    program = Sampled(seed)
    chance, kept = np.random.default_rng(99), []
    for step in range(STEPS):
        kept.append(leak)
        program.keep(LINE, leak, steps=steps)
        held = sum(kept[-steps:]) if steps else sum(kept)
        swing = 300e6 * chance.random() * (0.3 + 0.7 * ((step // 150) % 2))
        program.native = swing + (held if resident else 0)
        program.wait(STEP_NS)
    return judged(program)


def test_a_line_with_many_samples_is_a_leak_where_other_memory_hides_it() -> None:
    found = noisy(1, 40_000)

    assert found.verdict.outcome == "native"
    assert lines(found, "native-site") == [LINE]
    assert "about" in found.verdict.sentence


@pytest.mark.parametrize("seed", range(5))
def test_few_samples_are_no_leak(seed: int) -> None:
    assert noisy(seed, 3_000).verdict.outcome in ("stable", "cannot-judge")


def test_samples_of_blocks_that_are_freed_are_no_leak() -> None:
    assert noisy(1, 40_000, steps=300).verdict.outcome in ("stable", "cannot-judge")


def test_samples_without_resident_memory_are_no_leak() -> None:
    assert noisy(1, 40_000, resident=False).verdict.outcome in ("stable", "cannot-judge")


@pytest.mark.parametrize("handed_out", [True, False])
def test_a_line_is_believed_where_the_allocator_handed_out_what_is_never_touched(
    handed_out: bool,
) -> None:
    program = Sampled()
    for _ in range(STEPS):
        program.keep(LINE, 40_000)
        program.native_untouched += 40_000 if handed_out else 0
        program.wait(STEP_NS)
    recording = program.recording()
    places = Places.of(recording)
    lives = lifetimes(recording, places)
    (growth,) = sampled_growths(recording, places, lives)

    assert is_sure(growth, recording.samples, lives) == handed_out


def test_a_leak_of_1_kB_in_each_of_20_000_iterations_is_named_in_99_of_100_runs() -> None:
    named = 0
    for seed in range(100):
        program = Sampled(seed)
        for _ in range(STEPS):
            for _ in range(10):
                program.native += 1_000
                program.keep(LINE, 1_000)
            program.keep(OTHER, 5_000, steps=3)
            program.wait(STEP_NS)
        found = judged(program)
        named += found.verdict.outcome == "native" and lines(found, "native-site")[:1] == [LINE]

    assert named >= 99


def test_what_main_collects_and_frees_when_it_returns_is_judged_before_that() -> None:
    program = Sampled()
    for _ in range(STEPS):
        program.python_large += 20_000
        program.keep(LINE, 20_000, python=True)
        program.wait(STEP_NS)
    returned_ns = program.now_ns
    for block in program.heap:
        program.wait(STEP_NS // 20)
        block["died_ns"] = program.now_ns
    program.python_large = 0.0
    program.wait(STEP_NS)

    found = judged(program)

    assert (found.verdict.outcome, lines(found, "python-site")) == ("python", [LINE])
    assert "About 2" in found.verdict.sentence  # of 26 MB, an estimate
    assert found.judged_ns <= returned_ns + STEP_NS
    (memory,) = found.heap
    assert memory.whole.low < 40e6 < memory.whole.high
