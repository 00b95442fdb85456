"""What was not seen is said of a stable program; where it dominates, the program is not judged."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.recording.format.chains import ChainStep, StepKind

S = 1_000_000_000


def steady(native: tuple[float, ...] = (0.0,), steps: int = 400) -> Program:
    """A program that makes temporaries, with so much native memory in each part of its run."""
    program = Program(sample_every_ns=2_000_000)
    program.alloc(5, 1_000_000)
    for step in range(steps):
        program.native = native[step * len(native) // steps]
        program.temporary(10)
        program.wait(1_000_000)
    return program


def with_notes(program: Program, **notes: str) -> Analysis:
    recording = program.recording()
    recording.info |= notes
    return analyse(recording)


def processes(**numbers: int) -> str:
    told = {"followed": 0, "others": 1, "own_cpu_ns": 4 * S, "children_cpu_ns": 2 * S}
    told |= {"own_peak_bytes": 60_000_000, "children_peak_bytes": 60_000_000, "running": 0}
    told |= {"running_cpu_ns": 0, "running_peak_bytes": 0, **numbers}
    return " ".join(f"{name}={number}" for name, number in told.items())


def kinds(analysis: Analysis) -> list[str]:
    return [finding.kind for finding in analysis.findings if finding.kind != "live-at-end"]


def test_processes_that_were_not_recorded_are_said() -> None:
    analysis = with_notes(steady(), processes=processes(others=3))

    assert analysis.verdict.outcome == "stable"
    assert analysis.verdict.sentence.endswith(
        "3 processes that it started were not recorded: CPU time 2.00 s, the program's own 4.00 s."
    )
    assert kinds(analysis) == ["unseen-processes"]


@pytest.mark.parametrize(
    ("note", "follow", "sentence"),
    [
        (
            {"others": 1, "pythons": 1, "children_cpu_ns": 0},
            "fork",
            "1 Python process that it started was not recorded; record them with tlmem record "
            "--follow all.",
        ),
        (
            {"others": 30, "pythons": 2, "followed": 4, "children_cpu_ns": S},
            "all",
            "2 Python processes that it started were not recorded; interpreters with -S, -E or -I, "
            "or without this version of tlmem, are not followed: put tlmem record into their "
            "command line.",
        ),
        (
            {"others": 3, "pythons": 2},
            "fork",
            "3 processes that it started were not recorded: CPU time 2.00 s, the program's own "
            "4.00 s; record them with tlmem record --follow all.",
        ),
    ],
)
def test_a_python_that_was_not_recorded_is_said_whatever_it_did(
    note: dict[str, int], follow: str, sentence: str
) -> None:
    analysis = with_notes(steady(), processes=processes(**note), follow=follow)

    assert analysis.verdict.outcome == "stable"
    assert analysis.verdict.sentence.endswith(sentence)
    assert kinds(analysis) == ["unseen-processes"]


def test_tensors_and_arrays_that_could_not_be_followed_are_said() -> None:
    hook = "none (libc10 has no _ZN3c109alloc_cpuEm)"
    analysis = with_notes(steady(), **{"torch.hook": hook, "numpy.handler": "pinned"})

    assert analysis.verdict.outcome == "stable"
    assert analysis.verdict.sentence.endswith(
        "PyTorch's tensors were not recorded: libc10 has no _ZN3c109alloc_cpuEm. NumPy's allocator "
        "was replaced by 'pinned'; its arrays were not recorded."
    )
    assert kinds(analysis) == ["unseen-allocator"]


def test_allocators_that_were_followed_are_no_fact() -> None:
    analysis = with_notes(steady(), **{"torch.hook": "slots", "numpy.handler": "default_allocator"})

    assert kinds(analysis) == []


def test_the_largest_is_said_where_it_is_more_than_the_parent_had() -> None:
    note = processes(children_peak_bytes=900_000_000, children_cpu_ns=0)

    assert "the largest held 900 MB." in with_notes(steady(), processes=note).verdict.sentence


def test_processes_that_did_most_of_the_work_forbid_a_verdict() -> None:
    note = processes(own_cpu_ns=S)
    verdict = with_notes(steady(), processes=note).verdict

    assert verdict.outcome == "cannot-judge"
    assert "1 process that it started was not recorded" in verdict.sentence
    assert verdict.sentence.endswith(
        "; record what they run of Python with tlmem record --follow all."
    )


@pytest.mark.parametrize(
    "note",
    [
        "",
        "others=x others= =3 children_cpu_ns=-5",
        processes(others=0, children_cpu_ns=0),
        processes(others=40, children_cpu_ns=S),  # short commands
        processes(others=0, followed=4),  # recorded workers
        processes(others=1, followed=4, own_cpu_ns=0),  # whose CPU time it is cannot be known
    ],
)
def test_short_commands_and_recorded_workers_are_not_said(note: str) -> None:
    analysis = with_notes(steady(), processes=note)

    assert (analysis.verdict.outcome, kinds(analysis)) == ("stable", [])


def test_workers_that_run_another_program_are_not_taken_for_recorded_ones() -> None:
    note = processes(
        others=0, followed=2, running=2, running_cpu_ns=9 * S, running_peak_bytes=400_000_000
    )
    verdict = with_notes(steady(), processes=note).verdict

    assert verdict.outcome == "cannot-judge"
    assert "2 processes that it started were not recorded: CPU time 11.0 s" in verdict.sentence
    assert "the largest held 400 MB" in verdict.sentence


def test_native_memory_above_all_that_is_tracked_is_said() -> None:
    analysis = with_notes(steady((300e6,)), packages="torch")

    assert analysis.verdict.outcome == "stable"
    assert "300 MB are native code's (torch is imported), more than" in analysis.verdict.sentence
    assert kinds(analysis) == ["unseen-native"]
    assert (
        "(imported are torch, polars)"
        in with_notes(steady((300e6,)), packages="torch,polars").verdict.sentence
    )
    assert kinds(with_notes(steady((30e6,)))) == []


def test_native_memory_that_rose_in_some_steps_forbids_a_verdict() -> None:
    levels = (100e6, 100e6, 100e6, 100e6, 180e6, 180e6, 260e6, 340e6, 340e6, 340e6, 340e6)
    verdict = analyse(steady(levels).recording()).verdict

    assert verdict.outcome == "cannot-judge"
    assert "it rose, though not evenly" in verdict.sentence
    assert "reference cycles" not in verdict.sentence


def test_garbage_that_may_hold_the_native_memory_is_said() -> None:
    """As figures of matplotlib, whose pictures are native, wait for the collector."""
    levels = (100e6, 100e6, 100e6, 100e6, 180e6, 180e6, 260e6, 340e6, 340e6, 340e6, 340e6)
    program = steady(levels)
    figures = [program.alloc(10, 800) for _ in range(12)]
    cycle = ChainStep(StepKind.CYCLE, "Figure", "Figure._root_figure -> Figure", 1)
    data = ChainStep(StepKind.INSTANCE, "Line2D", "_xy")
    program.snapshot(([cycle, data], figures, 1.0))
    verdict = analyse(program.recording()).verdict

    assert verdict.outcome == "cannot-judge"
    assert "12 arrays are in reference cycles" in verdict.sentence
    assert verdict.sentence.endswith("gc.collect() shows whether it goes with them.")


@pytest.mark.parametrize(
    "levels",
    [
        (100e6, 100e6, 100e6, 100e6, 100e6, 340e6, 340e6, 340e6),  # made once
        (340e6, 100e6, 340e6, 100e6, 340e6, 100e6, 340e6, 100e6),  # comes and goes
    ],
)
def test_native_memory_that_is_made_once_or_comes_and_goes_is_no_doubt(
    levels: tuple[float, ...],
) -> None:
    assert analyse(steady(levels).recording()).verdict.outcome == "stable"


def peaked(size: int) -> Program:
    program = Program(slowdown=1, sample_every_ns=2_000_000)
    for step in range(400):
        if step == 80:
            large = [program.alloc(33, size // 4) for _ in range(4)]
        if step == 160:
            for number in large:
                program.free(number)
        program.temporary(10)
        program.wait(1_000_000)
    return program


def test_a_peak_far_above_the_end_is_said_with_its_line() -> None:
    analysis = analyse(peaked(600_000_000).recording())

    assert analysis.verdict.outcome == "stable"
    assert "The peak was far above: 656 MB resident after 8" in analysis.verdict.sentence
    assert "600 MB of it were allocated at program.py:33" in analysis.verdict.sentence
    assert kinds(analysis) == ["passed-peak"]


def test_a_small_peak_is_not_said() -> None:
    assert kinds(analyse(peaked(40_000_000).recording())) == []


def test_at_most_two_are_said_and_all_are_found() -> None:
    program = peaked(2_000_000_000)
    program.native = 300e6
    for _ in range(60):
        program.temporary(10)
        program.wait(1_000_000)
    analysis = with_notes(program, processes=processes())

    assert set(kinds(analysis)) >= {"unseen-processes", "passed-peak"}
    assert len(analysis.verdict.sentence.split("were not recorded")) <= 2


def test_too_few_samples_are_counted() -> None:
    program = steady()
    rows = program.samples
    program.samples = [*rows[:1], *rows[-1:]]
    verdict = analyse(program.recording()).verdict

    assert verdict.outcome == "cannot-judge"
    assert "resident memory was sampled 3 times only" in verdict.sentence


def test_many_samples_are_not_called_too_few() -> None:
    program = steady(steps=4_000)
    first = [row for row in program.samples if row["time_ns"] < 1.2e9]
    program.samples = [*first, program.samples[-1]]
    sentence = analyse(program.recording()).verdict.sentence

    assert "too few" not in sentence and "times only" not in sentence


def test_the_option_that_takes_no_samples_is_named() -> None:
    program = steady()
    program.samples = program.samples[:1]
    verdict = with_notes(program, rss_interval_ms="0").verdict

    assert verdict.outcome == "cannot-judge" and "--rss-interval 0" in verdict.sentence
