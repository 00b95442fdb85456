"""The text report of simulated programs: the verdict first, then lines, then parts that add up."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.model import Finding, Holder, StackFrame
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
    assert report.startswith("Leak at program.py:10: ")


def test_the_line_its_function_and_its_stack_are_named(report: str) -> None:
    assert "/home/user/program.py:10 in work" in report
    assert "> /home/user/program.py:10" in report


def test_the_parts_of_resident_memory_are_there(report: str) -> None:
    for name in ("arrays, tracked", "Python's heap", "not explained", "resident"):
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


def holder(name: str, count: int, line: int = 3, **about: Any) -> Holder:
    return Holder("python" if "seen_ns" in about else "scope", name, StackFrame("a.py", line, "f"),
                  count, **about)  # fmt: skip


def shown(*holders: Holder) -> list[str]:
    finding = Finding("growing-site", "error", 60, 0, "", holders=holders)
    return [row.strip() for row in text.held_by(finding)]


def test_holders_that_differ_in_numbers_are_one_line() -> None:
    seen = {"seen_ns": 10**9, "held_bytes": 800, "used_bytes": 800}

    assert shown(
        holder("list 'rows[3]'", 40, **seen), holder("list 'rows[14]'", 20, 9, **seen)
    ) == ["held by list 'rows[3]': 60 together (2 similar holders), seen after 1.00 s"]
    assert shown(holder("scope 'a' #7", 12), holder("scope 'a' #8", 30), holder("reader", 5)) == [
        "held by scope 'a' #7: at most 30 each (2 similar holders), acquired at a.py:3",
        "held by reader: 5, acquired at a.py:3",
    ]


def test_objects_without_a_holder_say_since_where() -> None:
    floating = Holder("floating", "nobody", StackFrame("a.py", 30, "f"), 2_000)

    assert shown(floating) == ["no holder: 2,000, since a.py:30"]


def test_a_line_that_grows_is_not_listed_again_as_alive(report: str) -> None:
    assert report.count("program.py:10 in work") == 2  # the line, and its frame in the stack
    assert "alive when judged" not in report and "Alive when judged" not in report


def test_other_lines_that_are_alive_are_listed_behind_those_that_grow() -> None:
    program = leaking()
    program.alloc(30, 5_000_000)
    program.temporary(20)
    report = text.render(summary_of(program.recording()))

    assert re.search(r"^Other lines with objects alive when judged, after [\d.]+ s$", report, re.M)
    assert report.count("program.py:30 in work") == 1


def test_lines_with_next_to_nothing_are_counted_and_not_listed() -> None:
    def alive(*sizes: int) -> list[str]:
        found = [
            Finding("live-at-end", "info", 1, size, "", site=StackFrame("a.py", at, "f"))
            for at, size in enumerate(sizes)
        ]
        return text.alive_block(found, "Alive").splitlines()[2:]

    assert [row.split()[3] for row in alive(1000, 900, 500, 400)] == [f"a.py:{n}" for n in range(4)]
    rows = alive(1_000_000, 900, 500, 400, 300)
    assert len(rows) == 4 and rows[-1] == "  and 2 more lines with 700 B"
    assert alive(*[10] * 11)[-1] == "  and 1 more line with 10 B"
    kept = Finding("live-at-end", "info", 150, 600, "", site=StackFrame("a.py", 16, "f"))
    found = [*(Finding("live-at-end", "info", 1, 10**6, "") for _ in range(3)), kept]
    assert "a.py:16 in f" in text.alive_block(found, "Alive")


def test_what_the_verdict_says_is_not_said_again() -> None:
    program = Program()
    for _ in range(400):
        program.temporary(20)
        program.native += 20_000
        program.wait(2_000_000)
    report = " ".join(text.render(summary_of(program.recording())).split())

    assert report.startswith("Native memory: ")
    assert report.count("Memory outside arrays and Python grew by") == 1
    assert "Other findings" not in report


def test_a_finding_is_said_by_a_sentence_that_names_its_line_elsewhere() -> None:
    site = StackFrame("/home/user/a.py", 10, "f")
    finding = Finding(
        "growing-site", "error", 4, 0, "4 of 4 arrays allocated at a.py:10.", site=site
    )

    assert text.is_said(
        finding, "Leak at a.py:10: 4 of 4 arrays allocated here. 1 more line grows."
    )
    assert not text.is_said(finding, "Leak at a.py:10: 5 of 5 arrays allocated here.")


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

    assert report.startswith("No leak found in ")
    assert "Growing lines" not in report
    assert "Next steps" not in report


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

    assert report.startswith("Process 8, one of 2 processes: Leak at program.py:10: ")
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
        "identity",
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
        "exit",
        "worker",
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
        "trace",
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
        "exit_count",
        "exit_bytes",
        "fix",
        "types",
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
