"""The page of what is found: its rows, its sums, and that a wolf is seen."""

from dataclasses import replace
from pathlib import Path

import pytest
from tlmem.scenarios.harness import detection
from tlmem.scenarios.harness.catalog import Result, Scenario, scenarios

from tlmem.analysis.model import Analysis, Attribution, Finding, StackFrame, Verdict

PATH = Path("/home/user/program.py")
LINE = StackFrame(str(PATH), 7, "main")
LEAK = Finding("growing-site", "error", 20, 2_000, "It grows.", site=LINE)
WARNING = Finding("growing-array", "warning", 1, 5, "It is replaced.", site=LINE)


def result(name: str, outcome: str, line: int, *findings: Finding) -> Result:
    said = findings[0].kind == "growing-site" if findings else False
    verdict = Verdict("leak" if said else "stable", "So it is.")
    scenario = Scenario(name, PATH, "It runs.", outcome, line)
    return Result(scenario, Analysis(verdict, Attribution(), findings))


def page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *results: Result
) -> tuple[int, str]:
    of = {entry.scenario.name: entry for entry in results}
    monkeypatch.setattr(
        detection, "scenarios", lambda: {name: entry.scenario for name, entry in of.items()}
    )
    monkeypatch.setattr(detection, "run", lambda scenario: of[scenario.name])
    return detection.main(), capsys.readouterr().out


def test_what_was_found_and_what_was_not_said_is_counted(monkeypatch, capsys) -> None:
    leak, healthy = result("leaks", "leak", 7, LEAK), result("healthy", "stable", 0)
    code, text = page(monkeypatch, capsys, leak, healthy)

    assert code == 0
    assert "## Programs with a fault: 1 of 1 found" in text
    assert (
        "| `leaks` | leak at program.py:7 | leak at program.py:7 | 20 | 2.00 kB | right |" in text
    )
    assert "## Healthy programs: nothing said of 1 of 1" in text
    assert "| `healthy` | It runs. | stable | none |" in text


def test_a_leak_that_was_not_found_is_wrong(monkeypatch, capsys) -> None:
    code, text = page(monkeypatch, capsys, result("leaks", "leak", 7))

    assert code == 1
    assert "## Programs with a fault: 0 of 1 found" in text
    assert "| stable | 0 | 0 B | **wrong** |" in text


def test_a_warning_on_a_healthy_program_is_wrong_though_the_verdict_is_right(
    monkeypatch, capsys
) -> None:
    healthy = result("healthy", "stable", 0, WARNING)
    code, text = page(monkeypatch, capsys, healthy)

    assert healthy.right
    assert code == 1
    assert "nothing said of 0 of 1" in text and "| stable | growing-array |" in text


def test_the_page_in_the_documentation_has_every_program_and_nothing_wrong() -> None:
    written = (Path(__file__).resolve().parents[2] / "docs" / "detection.md").read_text("utf-8")

    assert [name for name in scenarios() if f"| `{name}` |" not in written] == []
    assert "**wrong**" not in written


def test_only_its_own_part_of_a_page_is_replaced(monkeypatch, capsys, tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Head\n\n<!-- begin scenarios -->\nrun before\n<!-- end scenarios -->\n\n"
        "<!-- begin soak -->\nmany runs\n<!-- end soak -->\n"
    )
    leak = result("leaks", "leak", 7, LEAK)
    monkeypatch.setattr(detection, "scenarios", lambda: {"leaks": leak.scenario})
    monkeypatch.setattr(detection, "run", lambda scenario: leak)

    assert detection.main([str(page)]) == 0

    text = page.read_text()
    assert text.startswith("# Head\n\n<!-- begin scenarios -->\nWritten by `make detection`")
    assert "run before" not in text and "1 of 1 found" in text
    assert text.endswith("\n<!-- begin soak -->\nmany runs\n<!-- end soak -->\n")
    assert capsys.readouterr().out == ""


def test_a_number_that_the_truth_states_is_bold_and_must_be_right(monkeypatch, capsys) -> None:
    exact = result("leaks", "leak", 7, LEAK)
    right = replace(exact.scenario, count=20, bytes=2_000)
    wrong = replace(exact.scenario, count=21)

    assert page(monkeypatch, capsys, replace(exact, scenario=wrong))[0] == 1
    code, text = page(monkeypatch, capsys, replace(exact, scenario=right))
    assert code == 0
    assert "| **20** | **2.00 kB** | right |" in text
