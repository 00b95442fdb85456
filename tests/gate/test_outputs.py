"""Every format of ``tlmem check`` is what its readers expect, shown by reading it back."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gate.programs import HEALTHY, LEAK, LEAK_LINE, recorded, tlmem


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leak, and the same cut in half, in a folder whose name is no plain word."""
    folder = tmp_path_factory.mktemp("a, b:100% <c>")
    leak = recorded(folder, LEAK, "leak")
    recorded(folder, HEALTHY, "healthy")
    (folder / "cut.tlm").write_bytes(leak.read_bytes()[:20_000])
    (folder / "known.txt").write_text("leak:nothing\n")
    return folder


def written(place: Path, form: str, *words: str, code: int = 1) -> str:
    """What ``tlmem check`` prints in a format."""
    done = tlmem("check", "--format", form, *words, cwd=place)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    return done.stdout


ALL = ("leak.tlm", "cut.tlm", "healthy.tlm", "missing.tlm", "--suppressions", "known.txt")


def test_junit_has_a_case_for_each_budget(place: Path) -> None:
    root = ElementTree.fromstring(written(place, "junit", *ALL, code=2))

    suites = root.findall("testsuite")
    cases = [case for suite in suites for case in suite.findall("testcase")]
    failed = [case for case in cases if case.find("failure") is not None]
    assert root.tag == "testsuites" and len(suites) == 4
    assert (int(root.get("tests", 0)), int(root.get("failures", 0))) == (len(cases), len(failed))
    assert int(root.get("errors", 0)) == len(list(root.iter("error"))) > 0
    assert [case.get("name") for case in failed] == ["verdict"]
    assert failed[0].get("line") == str(LEAK_LINE) and failed[0].get("file") == "leak.py"
    failure = failed[0].find("failure")
    assert failure is not None and f"leak.py:{LEAK_LINE}" in (failure.text or "")
    for suite in suites:
        assert int(suite.get("tests", 0)) == len(suite.findall("testcase"))


def test_sarif_has_what_the_standard_asks_for(place: Path) -> None:
    log = json.loads(written(place, "sarif", *ALL, code=2))

    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    assert driver["name"] == "tlmem" and re.fullmatch(r"\d+\.\d+\.\d+", driver["semanticVersion"])
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert all(rule["shortDescription"]["text"].endswith(".") for rule in driver["rules"])
    (result,) = run["results"]
    assert ids[result["ruleIndex"]] == result["ruleId"] == "verdict"
    assert (result["level"], result["kind"]) == ("error", "fail")
    assert result["message"]["text"]
    (location,) = result["locations"]
    place_of = location["physicalLocation"]
    assert place_of["artifactLocation"] == {"uri": "leak.py", "uriBaseId": "SRCROOT"}
    assert place_of["region"] == {"startLine": LEAK_LINE}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "step"
    assert all(re.fullmatch(r"[\w.]+/v\d+", key) for key in result["partialFingerprints"])
    base = run["originalUriBaseIds"]["SRCROOT"]["uri"]
    assert base.startswith("file:///") and base.endswith("/") and " " not in base
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    notes = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert any("cut.tlm" in text for text in notes) and any("missing.tlm" in t for t in notes)
    assert {note["level"] for note in invocation["toolExecutionNotifications"]} == {"error"}


def test_sarif_shows_suppressed_leaks_as_such(place: Path) -> None:
    (place / "used.txt").write_text("leak:step\n")

    text = written(place, "sarif", "leak.tlm", "--suppressions", "used.txt", code=0)

    (result,) = json.loads(text)["runs"][0]["results"]
    assert result["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "leak:step (used.txt:1)"}
    ]


def test_a_fingerprint_does_not_change_with_lines_above(place: Path) -> None:
    recorded(place / "moved", "# one\n# two\n" + LEAK, "leak")

    first = json.loads(written(place, "sarif", "leak.tlm"))["runs"][0]["results"][0]
    second = json.loads(written(place / "moved", "sarif", "leak.tlm"))["runs"][0]["results"][0]

    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert first["locations"] != second["locations"]


def test_annotations_are_workflow_commands_at_the_line(place: Path) -> None:
    lines = written(place, "github", *ALL, code=2).splitlines()

    commands = [line for line in lines if line.startswith("::")]
    pattern = r"::(error|warning|notice) (\w+=[^:,]*(,\w+=[^:,]*)*)::(.+)"
    assert all(re.fullmatch(pattern, line) for line in commands)
    over = next(line for line in commands if "verdict is over budget" in line)
    assert over.startswith(f"::error file=leak.py,line={LEAK_LINE},title=tlmem%3A verdict")
    assert any("unused suppression" in line for line in commands)


def test_markdown_has_a_table_and_the_numbers_of_the_plot(place: Path) -> None:
    text = written(place, "markdown", *ALL, code=2)

    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    for table in tables:
        rows = [re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()]
        assert len(set(rows)) == 1
    assert "| verdict | leak | stable or retained | **over** |" in text
    assert text.count("<details>") == text.count("</details>") == 3
    assert "| time | arrays and tensors | resident | native | python |" in text


def test_the_step_summary_is_added_to(place: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")

    done = tlmem(
        *("check", "--format", "github", "leak.tlm"),
        cwd=place,
        environment={"GITHUB_STEP_SUMMARY": str(summary)},
    )

    assert done.returncode == 1
    assert summary.read_text().startswith("before\n### Memory of leak.py\n")


def test_further_formats_are_written_beside_the_first(place: Path, tmp_path: Path) -> None:
    more = [f"{form}={tmp_path / form}" for form in ("json", "junit", "sarif", "markdown")]

    done = tlmem("check", "leak.tlm", *(w for m in more for w in ("--write", m)), cwd=place)

    assert done.returncode == 1
    assert f"leak.py:{LEAK_LINE} in step" in done.stdout
    assert json.loads((tmp_path / "json").read_text())["exit_code"] == 1
    assert ElementTree.parse(tmp_path / "junit").getroot().tag == "testsuites"
    assert json.loads((tmp_path / "sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "markdown").read_text().startswith("### Memory of leak.py")


def test_text_says_it_in_few_lines(place: Path) -> None:
    text = written(place, "text", "leak.tlm")

    assert len(text.splitlines()) <= 20
    assert text.splitlines()[-2:] == [
        "Failed: 1 of 2 budgets is over.",
        "next: tlmem report leak.tlm",
    ]
    assert "kept.append(work[:500].copy())" in text


def test_an_output_that_cannot_be_written_is_told(place: Path) -> None:
    done = tlmem("check", "healthy.tlm", "-o", "/no/such/place", cwd=place)

    assert done.returncode == 2 and "/no/such/place" in done.stderr
