"""The moment of judging, the clocks, and what is known after old events were folded."""

from dataclasses import replace

import numpy as np
import pandas as pd
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.lifetimes import clocks, lifetimes, moment_of_judging
from tlmem.analysis.places import Places


def lives_of(program: Program):
    recording = program.recording()
    return lifetimes(recording, Places.of(recording))


def steps_that_keep(program: Program) -> list[int]:
    """400 steps of a millisecond, each of which keeps an array; these."""
    kept = []
    for _ in range(400):
        kept.append(program.alloc(10))
        program.temporary(20)
        program.wait(1_000_000)
    return kept


def test_a_program_that_keeps_its_arrays_is_judged_at_its_end() -> None:
    program = Program()
    for _ in range(50):
        program.alloc(10)
        program.temporary(20)
    program.wait(1_000_000_000)

    assert lives_of(program).judged_ns == program.now_ns


def test_a_program_that_unwinds_is_judged_before() -> None:
    program = Program()
    held = [program.alloc(10) for _ in range(500)]
    full = program.now_ns
    for number in held:
        program.free(number)

    lives = lives_of(program)
    assert full <= lives.judged_ns < lives.died.min()


def test_a_program_that_releases_what_it_loaded_and_goes_on_is_judged_at_its_end() -> None:
    program = Program()
    for number in [program.alloc(10, 40_000) for _ in range(20)]:
        program.free(number)
    program.wait(8_000_000_000)

    assert lives_of(program).judged_ns == program.now_ns
    assert analyse(program.recording()).verdict.outcome == "stable"


def test_what_is_released_before_the_last_part_of_the_run_has_not_leaked() -> None:
    program = Program()
    for number in steps_that_keep(program):
        program.free(number)
    program.wait(80_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_what_is_held_until_the_last_part_of_the_run_has_leaked() -> None:
    program = Program()
    for number in steps_that_keep(program):
        program.free(number)
    program.wait(20_000_000)

    assert analyse(program.recording()).verdict.outcome == "leak"


def test_native_growth_after_arrays_were_released_is_found() -> None:
    program = Program()
    for number in [program.alloc(10, 40_000) for _ in range(200)]:
        program.free(number)
    for _ in range(800):
        program.native += 125_000
        program.wait(10_000_000)

    assert analyse(program.recording()).verdict.outcome == "native"


def test_a_pause_of_the_machine_after_the_release_is_no_part_of_the_run() -> None:
    program = Program()
    for number in steps_that_keep(program):
        program.free(number)
    program.sample_every_ns = 10**12
    program.wait(500_000_000)

    assert analyse(program.recording()).verdict.outcome == "leak"


def test_what_is_alive_is_counted_before_the_program_unwinds() -> None:
    program = Program()
    held = [program.alloc(10, 2_000) for _ in range(100)]
    for _ in range(400):
        program.temporary(20)
        program.wait(1_000_000)
    for number in held:
        program.free(number)
    findings = analyse(program.recording()).findings

    assert [(f.kind, f.count, f.bytes) for f in findings if f.site.line == 10] == [
        ("live-at-end", 100, 200_000)
    ]


def test_a_temporary_at_the_very_end_is_not_alive() -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20, 1_000_000)
        program.wait(1_000_000)

    assert analyse(program.recording()).findings == ()


def test_objects_made_after_the_end_do_not_count() -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20)
        program.wait(1_000_000)
    program.end_ns = program.now_ns
    program.alloc(30)
    program.wait(1_000_000)

    assert analyse(program.recording()).findings == ()


def test_threads_that_go_on_after_the_main_code_count() -> None:
    program = Program(end_ns=1_000_000)
    steps_that_keep(program)

    assert analyse(program.recording()).verdict.outcome == "leak"


def test_what_the_main_thread_makes_after_its_code_belongs_to_the_end() -> None:
    """What ``atexit`` calls may write and free all that leaked, and make as many objects."""
    program = Program()
    for _ in range(1_500):
        program.alloc(10)
        program.wait(1_000_000)
    program.end_ns, program.end_thread = program.now_ns, 1
    for row in range(1_500):
        program.temporary(20)
        program.free(row)

    verdict = analyse(program.recording()).verdict
    assert verdict.outcome == "leak"
    assert "1,500 of 1,500" in verdict.sentence


def test_the_same_events_give_the_same_findings_with_and_without_an_end() -> None:
    program = Program()
    steps_that_keep(program)
    killed = analyse(program.recording())
    program.end_ns = program.now_ns

    assert analyse(program.recording()).findings == killed.findings


def test_a_pause_hardly_moves_the_clock_of_time() -> None:
    born = np.arange(1000) * 1_000_000
    born[500:] += 10_000_000_000
    time = clocks(born, np.arange(1000), np.ones(1000, np.int64))[0]

    assert time[499] / time[-1] > 0.45


def test_an_empty_program_has_a_moment_of_judging() -> None:
    nothing = np.zeros(0, np.int64)

    assert moment_of_judging(nothing, nothing, nothing, 5) == 5


def test_what_an_import_makes_is_not_the_programs() -> None:
    program = Program()
    steps_that_keep(program)
    recording = program.recording()
    site = program.lines[10]
    leaf = int(recording.sites.index.max()) + 1
    machinery = pd.DataFrame(
        {
            "parent": [site],
            "file": ["<frozen importlib._bootstrap>"],
            "function": ["_load"],
            "line": [5],
            "depth": [2],
        },
        index=[leaf],
    )
    recording.sites = pd.concat([recording.sites, machinery])
    recording.blame_table = pd.concat([recording.blame_table, pd.Series([site], index=[leaf])])
    recording.objects.loc[recording.objects["born_site"] == site, "born_site"] = leaf

    assert analyse(recording).findings == ()


def test_a_damaged_recording_without_a_finding_cannot_be_judged() -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20)
        program.wait(1_000_000)
    recording = program.recording()
    recording.problems = ["300 events of thread 1 were dropped"]
    verdict = analyse(recording).verdict

    assert verdict.outcome == "cannot-judge"
    assert "300 events" in verdict.sentence


def fold(recording, horizon_ns: int):
    """The same recording as a reader would give it after a checkpoint at ``horizon_ns``."""
    objects = recording.objects
    live = objects["died_ns"] < 0
    grouped = objects.groupby("born_site")
    recording.site_totals = pd.DataFrame(
        {
            "alloc_count": grouped.size(),
            "first_ns": grouped["born_ns"].min(),
            "live_count": live.groupby(objects["born_site"]).sum(),
            "live_bytes": objects["size_bytes"].where(live, 0).groupby(objects["born_site"]).sum(),
        }
    )
    old = objects["born_ns"] <= horizon_ns
    gone = old & ~live & (objects["died_ns"] <= horizon_ns)
    recording.objects = objects[~gone].assign(folded=old[~gone])
    recording.fold = {"live_stride": 1}
    recording.horizon_ns = recording.lost_ns = horizon_ns
    return recording


def test_a_fold_changes_neither_verdict_nor_numbers() -> None:
    program = Program()
    for step in range(2000):
        if step % 4 == 0:
            program.alloc(10)
        program.temporary(10)
        program.temporary(20)
        program.wait(500_000)
    whole = analyse(program.recording())
    folded = analyse(fold(program.recording(), program.now_ns // 2))

    assert folded.verdict == whole.verdict
    assert [replace(found, cohorts=None) for found in folded.findings] == [
        replace(found, cohorts=None) for found in whole.findings
    ]


def test_a_bounded_cache_stays_stable_after_a_fold() -> None:
    program, held = Program(), []
    for _ in range(2000):
        held.append(program.alloc(10))
        if len(held) > 100:
            program.free(held.pop(0))
        program.wait(500_000)
    folded = fold(program.recording(), program.now_ns // 2)

    assert analyse(folded).verdict.outcome == "stable"
