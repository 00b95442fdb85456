"""The text report of simulated programs: the verdict first, then lines, then parts that add up."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.report import json as json_report
from tlmem.report import text
from tlmem.report.summary import Process, Summary


def summary_of(*recordings: Any) -> Summary:
    return Summary(tuple(Process(recording, analyse(recording)) for recording in recordings))


def leaking(steps: int = 400) -> Program:
    program = Program()
    for _ in range(steps):
        program.alloc(10, 10_000)
        program.temporary(20)
        program.wait(1_000_000)
    return program


@pytest.fixture
def report() -> str:
    return text.render(summary_of(leaking().recording()))


def test_the_verdict_comes_first(report: str) -> None:
    assert report.startswith("Leak: ")


def test_the_line_its_function_and_its_stack_are_named(report: str) -> None:
    assert "/home/user/program.py:10 in work" in report
    assert "> /home/user/program.py:10" in report


def test_the_parts_of_resident_memory_are_there(report: str) -> None:
    for name in ("arrays, tracked", "Python's own heap", "not explained", "resident"):
        assert name in report


def test_no_line_is_wider_than_a_terminal(report: str) -> None:
    assert max(map(len, report.splitlines())) <= text.WIDTH


def test_there_is_no_colour_and_one_line_feed_at_the_end(report: str) -> None:
    assert "\x1b" not in report
    assert report.endswith("\n") and not report.endswith("\n\n")


def test_a_leak_leads_to_the_commands_that_tell_more(report: str) -> None:
    finding = next(f for f in analyse(leaking().recording()).findings if f.kind == "growing-site")

    assert f"  tlmem history /home/user/tlmem-program.7.tlm {finding.object}\n" in report
    assert "  tlmem balance /home/user/tlmem-program.7.tlm\n" in report


def test_problems_are_told() -> None:
    recording = leaking().recording()
    recording.complete, recording.problems = False, ["one block does not decode; it was left out"]
    report = text.render(summary_of(recording))

    assert "not complete" in report
    assert "problem: one block does not decode" in report


def test_a_foreign_numpy_allocator_is_told() -> None:
    recording = leaking().recording()
    recording.info["numpy.handler"] = "their_allocator"

    assert "'their_allocator'" in text.render(summary_of(recording))


def test_a_quiet_program_has_no_table_of_growing_lines() -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20)
        program.wait(1_000_000)
    report = text.render(summary_of(program.recording()))

    assert report.startswith("Stable: ")
    assert "keep ever more" not in report
    assert "To see more" not in report


def family() -> Summary:
    parent, child = Program(), leaking()
    for _ in range(400):
        parent.temporary(20)
        parent.wait(1_000_000)
    first, second = parent.recording(), child.recording()
    second.pid = 8
    return summary_of(first, second)


def test_a_family_is_judged_by_its_worst_member() -> None:
    report = text.render(family())

    assert report.startswith("Process 8 of 2: Leak: ")
    assert "Process 7, program.py" in report
    assert "2 processes together" in report


def test_a_child_that_made_nothing_does_not_spoil_the_verdict() -> None:
    busy, idle = Program(), Program()
    for _ in range(400):
        busy.temporary(20)
        busy.wait(1_000_000)
    second = idle.recording()
    second.pid = 8

    assert summary_of(busy.recording(), second).verdict.outcome == "stable"


def test_json_has_exactly_the_fields_of_the_schema() -> None:
    report = json_report.to_dict(summary_of(leaking().recording()))

    assert list(report) == [
        "schema",
        "recording",
        "verdict",
        "attribution",
        "other_attribution",
        "growth_attribution",
        "peak_attribution",
        "findings",
        "totals",
        "per_mark",
        "per_scope",
    ]
    assert list(report["recording"]) == [
        "path",
        "version",
        "command",
        "events",
        "lost",
        "seconds",
        "complete",
    ]
    assert list(report["verdict"]) == [
        "outcome",
        "slope_bytes_per_s",
        "grown_bytes",
        "slope_low_bytes_per_s",
        "slope_high_bytes_per_s",
        "confidence",
        "resolution_bytes_per_s",
        "sentence",
    ]
    assert set(report["findings"][0]) == {
        "kind",
        "severity",
        "count",
        "bytes",
        "object",
        "site",
        "holders",
        "stack",
        "allocated",
        "freed",
        "earlier",
        "slope_bytes_per_s",
        "slope_low_bytes_per_s",
        "slope_high_bytes_per_s",
        "confidence",
        "cohorts",
        "evidence",
    }
    assert report["findings"][0]["site"] == {
        "file": "/home/user/program.py",
        "line": 10,
        "function": "work",
    }


def test_json_attribution_closes() -> None:
    parts = json_report.to_dict(summary_of(leaking().recording()))["attribution"]
    parts["untouched_bytes"] *= -1
    resident = parts.pop("resident_bytes")

    assert sum(parts.values()) == resident


def test_json_of_a_family_has_every_process_and_sums() -> None:
    summary = family()
    report = json_report.to_dict(summary)

    assert list(report["processes"]) == ["7", "8"]
    assert report["verdict"]["outcome"] == "leak"
    assert report["totals"]["current_count"] == 400
    assert report["processes"]["7"]["verdict"]["outcome"] == "stable"
    assert isinstance(summary.processes[0].recording, SimpleNamespace)


def test_json_has_no_numbers_that_json_does_not_know() -> None:
    program = Program(sample_every_ns=10**12)

    rendered = json_report.render(summary_of(program.recording()))

    assert "NaN" not in rendered and "Infinity" not in rendered
