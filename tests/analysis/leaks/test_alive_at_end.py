"""What is alive when judged: temporaries of the last moment are behind what is kept, and marked;
what is freed before exit is counted."""

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.report import json as json_report
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
    assert "alive when judged, temporary: freed later where others" in findings[1].evidence
    assert findings[1].evidence.endswith("It was freed before exit.")
    assert "before exit" not in findings[0].evidence


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


def emptied(freed: int) -> Program:
    """A list of 100 arrays of line 40, and of these so many are freed as the program ends."""
    program = Program()
    for _ in range(200):
        program.temporary(20)
        program.wait(2_000_000)
    kept = [program.alloc(40, 7_000) for _ in range(100)]
    for _ in range(200):
        program.temporary(20)
        program.wait(2_000_000)
    program.end_ns = program.now_ns + 1_000
    program.wait(100_000)
    for number in kept[:freed]:
        program.free(number)
    return program


@pytest.mark.parametrize(
    ("freed", "words"),
    [
        (0, "700 kB, the oldest allocated after 4.02 s."),
        (1, " 1 of them, 7.00 kB, was freed before exit."),
        (98, " 98 of them, 686 kB, were freed before exit."),
        (100, " All were freed before exit."),
    ],
)
def test_what_is_freed_before_exit_is_said(freed: int, words: str) -> None:
    recording = emptied(freed).recording()
    analysis = analyse(recording)
    (found,) = [f for f in analysis.findings if f.kind == "live-at-end"]
    summary = Summary((Process(recording, analysis),))
    (shown,) = json_report.to_dict(summary)["findings"]

    assert found.count == 100 and found.evidence.endswith(words)
    assert (shown["exit_count"], shown["exit_bytes"]) == (100 - freed, 7_000 * (100 - freed))


def test_the_report_has_a_column_for_what_is_left_where_that_is_less() -> None:
    def block(freed: int) -> list[str]:
        recording = emptied(freed).recording()
        report = text.render(Summary((Process(recording, analyse(recording)),)))
        return report[report.index("Alive when judged, after 8") :].split("\n")[1:3]

    assert block(0) == [
        "      bytes     alive  line",
        "     700 kB       100  /home/user/program.py:40 in work",
    ]
    assert block(98) == [
        "      bytes     alive   at exit  line",
        "     700 kB       100   14.0 kB  /home/user/program.py:40 in work",
    ]
