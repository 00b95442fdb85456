"""Growth outside arrays on simulated programs, and the attribution that adds up."""

import random

import numpy as np
import pandas as pd
import pytest
from support.traces import Program

from tlmem.analysis import Attribution, analyse
from tlmem.analysis.growth.curves import Window, freed_since_asked
from tlmem.analysis.growth.process_growth import first_rise, judge_samples
from tlmem.analysis.rules import RULES


def run(program: Program, steps: int = 400, native: float = 0, python: float = 0) -> str:
    for _ in range(steps):
        program.temporary(20, 500_000)
        program.native += native
        program.python += python
        program.wait(2_000_000)
    return analyse(program.recording()).verdict.outcome


def test_native_memory_that_keeps_growing_is_native() -> None:
    program = Program()

    assert run(program, native=4_000) == "native"
    assert "Record again with tlmem record --heap" in analyse(program.recording()).verdict.sentence


@pytest.mark.parametrize(
    "levels, kept",
    [
        ([(10, 50), (30, 70), (5, 70), (5, 70)], [0, 0, 25, 25]),  # the C allocator keeps it
        ([(10, 50), (30, 70), (5, 45), (5, 45)], [0, 0, 0, 0]),  # the process gave it back
        ([(10, 50), (30, 70), (5, 70), (20, 70)], [0, 0, 25, 10]),  # later arrays fill it
        ([(10, 50), (30, 70), (5, 90), (5, 90)], [0, 0, 25, 25]),  # others take memory meanwhile
    ],
)
def test_arrays_freed_since_the_allocator_was_asked_may_be_free_in_it(
    levels: list[tuple[int, int]], kept: list[int]
) -> None:
    """Memory freed between two samples of the allocator does not count as growth."""
    table = pd.DataFrame(levels, columns=["tracked", "anon"]).astype(float)
    table["time_ns"] = range(len(table))
    table["malloc_free"] = [0.0, *[np.nan] * (len(table) - 1)]

    assert freed_since_asked(Window(table, 0, len(table))).tolist() == kept
    table.loc[len(table) - 1, "malloc_free"] = 0.0
    assert freed_since_asked(Window(table, 0, len(table)))[-1] == 0


@pytest.mark.parametrize("native, outcome", [(0, "stable"), (20_000, "native")])
def test_freed_memory_in_quarantine_is_no_growth_and_hides_none(native: int, outcome: str) -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20, 500_000)
        program.quarantined += 8_000
        program.native += native
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == outcome


@pytest.mark.parametrize("native, outcome", [(0, "stable"), (4_000, "native")])
def test_what_the_recorder_takes_for_itself_is_no_part_of_native_memory(
    native: int, outcome: str
) -> None:
    program = Program()
    for step in range(400):
        program.temporary(20, 500_000)
        program.native += native
        program.recorder = 1e6 + (4e6 if step % 50 > 40 else 0) + 2_000 * step
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == outcome


def test_a_pause_does_not_hide_native_growth() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20, 500_000)
        program.native += 2_000
        program.wait(2_000_000 if step != 130 else 500_000_000)

    assert analyse(program.recording()).verdict.outcome == "native"


def test_native_growth_is_measured() -> None:
    program = Program(slowdown=1)
    run(program, native=10_000)
    verdict = analyse(program.recording()).verdict

    assert verdict.slope_bytes_per_s == pytest.approx(10_000 / 2.06e-3, rel=0.1)
    assert "native code" in verdict.sentence


def test_python_objects_that_keep_coming_are_python() -> None:
    assert run(Program(), python=20_000) == "python"


@pytest.mark.parametrize("arena_at", range(150, 400, 50))
def test_an_arena_at_any_time_does_not_hide_how_large_objects_grow(arena_at: int) -> None:
    program = Program()
    for step in range(400):
        program.temporary(20, 500_000)
        program.python = 9e6 if step < arena_at else 10e6
        program.python_large += 5_000
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "python"


def test_what_a_function_gives_back_at_its_end_was_kept_until_then() -> None:
    program = Program()
    run(program, 400, python=50_000)
    for _ in range(6):
        program.python -= 3_000_000
        program.wait(10_000_000)

    assert analyse(program.recording()).verdict.outcome == "python"


def test_modules_imported_late_are_no_growth() -> None:
    program = Program()
    for step in range(100):
        if step < 2:
            program.alloc(10)
        program.python += 100_000
        program.wait(2_000_000)
    for _ in range(300):
        program.temporary(20)
        program.wait(150_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_what_rises_while_modules_are_imported_is_no_growth() -> None:
    program = Program()
    for _ in range(400):
        program.python += 100_000
        program.native += 50_000
        program.wait(2_000_000)
    recording = program.recording()
    recording.samples["modules"] = range(100, 100 + len(recording.samples))
    quiet = program.recording()
    quiet.samples["modules"] = 100.0

    assert analyse(recording).verdict.outcome == "stable"
    assert analyse(quiet).verdict.outcome == "python"


@pytest.mark.parametrize("wait, outcome", [(300_000, "cannot-judge"), (2_000_000, "native")])
def test_libraries_that_are_loaded_in_a_short_run_are_no_growth(wait: int, outcome: str) -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20)
        program.native += 50_000
        program.wait(wait)
    recording = program.recording()
    quiet = analyse(program.recording()).verdict.outcome
    rows = len(recording.samples)
    recording.samples["file"] = 30e6 + np.arange(rows) * 400 * 40_000 / rows

    assert (quiet, analyse(recording).verdict.outcome) == ("native", outcome)


def test_a_large_module_is_imported_for_as_long_as_it_is_compiled() -> None:
    """The number of modules rises when it begins; the next import frees what compiling took."""
    program = Program(slowdown=1)
    for step in range(400):
        begins = step % 12 == 0
        program.python += -1_000_000 if begins else 100_000
        program.modules += begins
        program.wait(10_000_000)
    quiet = program.recording()
    quiet.samples["modules"] = 100.0

    assert analyse(program.recording()).verdict.outcome == "stable"
    assert analyse(quiet).verdict.outcome == "python"


@pytest.mark.parametrize(
    "seconds, outcome", [(20, "stable"), (60, "python")], ids=["starting", "making modules"]
)
def test_a_program_that_imports_for_most_of_a_long_run_makes_modules(
    seconds: int, outcome: str
) -> None:
    program = Program(slowdown=1)
    for _ in range(400):
        program.python += 100_000
        program.modules += 1
        program.wait(seconds * 2_500_000)

    assert analyse(program.recording()).verdict.outcome == outcome


def test_a_leak_as_fast_as_imports_would_not_have_been_seen() -> None:
    program = Program(slowdown=1)
    for _ in range(400):
        program.python += 100_000
        program.native += 50_000
        program.modules += 1
        program.wait(10_000_000)
    found = judge_samples(program.recording().samples, 0, program.now_ns)

    assert found.rises == ()
    assert (found.resolution_bytes_per_s or 0) >= 50_000 / 10e-3
    assert (found.python_resolution_bytes_per_s or 0) >= 100_000 / 10e-3


def test_nothing_growing_is_stable() -> None:
    assert run(Program()) == "stable"


@pytest.mark.parametrize("at", [10, 150, 250, 390])
def test_one_large_step_is_no_growth(at: int) -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        if step == at:
            program.native += 30e6
            program.python += 30e6
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_growth_that_stops_is_a_warm_up() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        if step < 250:
            program.native += 50_000
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_growth(seed: int) -> None:
    program, chance = Program(), random.Random(seed)
    for _ in range(400):
        program.temporary(20)
        program.native = chance.random() * 20e6
        program.python = 30e6 + chance.random() * 5e6
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


@pytest.mark.parametrize("seed", range(10))
def test_a_slow_native_leak_is_found_under_scratch_memory(seed: int) -> None:
    program, chance, leaked = Program(), random.Random(seed), 0
    for _ in range(400):
        program.temporary(20)
        leaked += 10_000
        program.native = leaked + (chance.random() < 0.2) * chance.random() * 20e6
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "native"


def test_memory_freed_but_resident_all_the_time_is_retained() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 200e6 if step > 50 else 0
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "retained"


def test_a_machine_that_stops_a_program_at_its_peak_hides_nothing() -> None:
    program = Program(kept=0)
    for step in range(400):
        program.temporary(20, 10_000)
        program.kept = 200e6 if step > 50 else 0
        program.wait(2_000_000)
        if step == 30:
            program.stand_still(800_000_000)

    assert analyse(program.recording()).verdict.outcome == "retained"


def test_little_memory_that_is_kept_free_is_not_retained() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 25e6 if step > 50 else 0
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_free_memory_that_is_used_again_now_and_then_is_not_retained() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 200e6 if step % 50 > 5 else 0
        program.native = 0 if step % 50 > 5 else 200e6
        program.wait(2_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_an_allocator_that_is_asked_seldom_tells_enough_to_say_that_it_keeps_memory() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 200e6 if step > 50 else 0
        program.wait(2_000_000)
    recording = program.recording()
    seldom = recording.samples.index % 16 != 8
    recording.samples.loc[seldom, ["malloc_used", "malloc_free"]] = float("nan")

    verdict = analyse(recording).verdict
    assert (verdict.outcome, "the C allocator keeps it" in verdict.sentence) == ("retained", True)


def test_a_run_ends_at_its_end_also_where_samples_are_dense_at_its_begin() -> None:
    """The highest of the last samples is the end of a run whose function frees what it held."""
    times = np.concatenate([np.linspace(0.1, 8, 240), np.linspace(8.1, 15, 60)])
    values = 20e6 + 5e6 * np.minimum(times / 8, 1)
    values[245] += 4e6

    assert first_rise("python", times, [times], values, RULES.heap_bytes, []) is None


def test_freed_memory_that_stays_resident_and_becomes_more_is_retained_with_its_rate() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 500_000 * step
        program.wait(2_000_000)
    analysis = analyse(program.recording())
    verdict = analysis.verdict

    assert verdict.outcome == "retained"
    assert "and becomes more" in verdict.sentence
    assert verdict.slope_bytes_per_s == pytest.approx(25e6, rel=0.1)
    assert [found.kind for found in analysis.findings if found.slope_bytes_per_s] == ["retained"]


def test_freed_memory_of_a_process_that_does_not_grow_is_not_said_to_become_more() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept = 500_000 * step
        program.native = 200e6 - program.kept
        program.wait(2_000_000)
    verdict = analyse(program.recording()).verdict

    assert "becomes more" not in verdict.sentence


def test_a_leak_of_small_blocks_that_keep_pages_of_freed_ones_says_so() -> None:
    program = Program()
    for step in range(400):
        program.temporary(20)
        program.kept, program.native = 500_000 * step, 10_000 * step
        program.wait(2_000_000)
    recording = program.recording()
    seldom = recording.samples.index % 6 != 1
    recording.samples.loc[seldom, ["malloc_used", "malloc_free"]] = float("nan")
    verdict = analyse(recording).verdict

    assert verdict.outcome == "native"
    assert "Larger is what it leaves behind: " in verdict.sentence


@pytest.mark.parametrize(("megabytes", "outcome"), [(200, "retained"), (35, "stable")])
def test_buffers_that_a_device_keeps_idle_are_retained(megabytes: int, outcome: str) -> None:
    program = Program()
    for step in range(400):
        program.free(program.alloc(20, 4_000, device=16))
        program.pool_bytes = megabytes * 1e6 if step > 50 else 0
        program.wait(2_000_000)
    verdict = analyse(program.recording()).verdict

    assert verdict.outcome == outcome
    assert ("buffers of devices are kept" in verdict.sentence) == (outcome == "retained")


def test_without_samples_a_quiet_program_cannot_be_judged() -> None:
    program = Program(sample_every_ns=10**12)

    assert run(program) == "cannot-judge"


def test_a_leak_is_a_leak_even_without_samples() -> None:
    program = Program(sample_every_ns=10**12)
    for _ in range(400):
        program.alloc(10)
        program.wait(1_000_000)

    assert analyse(program.recording()).verdict.outcome == "leak"


def test_attribution_adds_up_and_shows_what_it_cannot_explain() -> None:
    program = Program(native=7e6, kept=3e6)
    kept = [program.alloc(10, 1_000_000) for _ in range(10)]
    program.wait(500_000_000)
    parts = analyse(program.recording()).attribution

    assert len(kept) == 10
    assert parts.tracked_bytes == 10_000_000
    assert parts.python_bytes == 5_000_000
    assert parts.allocator_free_bytes == 3_000_000
    assert parts.other_bytes == 37_000_000
    assert parts.residual_bytes == 20_000_000
    assert total_of(parts) == parts.resident_bytes


def test_attribution_without_samples_is_not_known() -> None:
    program = Program()
    program.alloc(10)
    recording = program.recording()
    recording.samples = recording.samples.drop(columns=["anon", "file"])

    assert not analyse(recording).attribution.known


def total_of(parts: Attribution) -> int:
    return (
        parts.tracked_bytes
        - parts.untouched_bytes
        + parts.pool_bytes
        + parts.python_bytes
        + parts.allocator_free_bytes
        + parts.recorder_bytes
        + parts.other_bytes
        + parts.residual_bytes
    )
