"""What is alive at the end: temporaries of the last moment are behind what is kept, and marked."""

from support.traces import Program

from tlmem.analysis import analyse
from tlmem.report import text
from tlmem.report.summary import Process, Summary


def ended_inside() -> Program:
    """A table of line 30 is kept; the end comes while line 20 has a large temporary."""
    program = Program()
    for _ in range(50):
        program.alloc(30, 100)
    for _ in range(200):
        program.temporary(20, 500_000)
        program.wait(2_000_000)
    last = program.alloc(20, 500_000)
    program.end_ns = program.now_ns + 1_000
    program.wait(100_000)
    program.free(last)
    return program


def test_a_temporary_of_the_last_moment_is_behind_what_is_kept() -> None:
    findings = [f for f in analyse(ended_inside().recording()).findings if f.kind == "live-at-end"]

    assert [(f.site and f.site.line, f.count, f.passing) for f in findings] == [
        (30, 50, False),
        (20, 1, True),
    ]
    assert "alive at the end, temporary: freed later where others" in findings[1].evidence


def test_a_temporary_of_the_last_moment_is_marked_in_the_report() -> None:
    recording = ended_inside().recording()
    shown = text.render(Summary((Process(recording, analyse(recording)),)))

    assert "program.py:20 in work, temporary\n" in shown


def test_what_is_never_freed_is_not_in_passing() -> None:
    program = Program()
    for _ in range(200):
        program.temporary(20, 500_000)
        program.wait(2_000_000)
    program.alloc(20, 500_000)
    (found,) = [f for f in analyse(program.recording()).findings if f.kind == "live-at-end"]

    assert not found.passing
