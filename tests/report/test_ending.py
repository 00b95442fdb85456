"""How the program ended is said in each form of the report, where it did not end well."""

import json
import sys
from pathlib import Path

import pytest
from support import programs
from support.summaries import leaking

from tlmem.report import FORMATS
from tlmem.report.ending import ending_sentence
from tlmem.report.summary import Summary

ENDS = {
    "0": "",
    "3": "The program ended with exit code 3.",
    "ValueError": "The program ended with an uncaught exception: ValueError.",
}


@pytest.mark.parametrize("format", ["text", "html", "markdown"])
@pytest.mark.parametrize("ended", ENDS)
def test_an_ending_that_is_not_well_is_said_once_below_the_verdict(format: str, ended: str) -> None:
    summary = Summary((leaking(info={"exit": ended, "command": "a.py"}),))
    shown = FORMATS[format](summary)
    unfolded = shown if format == "text" else shown.partition("<details>")[0]
    verdict, _, below = unfolded.partition("Leak at ")

    assert "The program ended" not in verdict
    assert below.count("The program ended") == (1 if ENDS[ended] else 0)
    assert ENDS[ended] in below


@pytest.mark.parametrize("ended", [*ENDS, None])
def test_json_says_what_the_recording_says(ended: str | None) -> None:
    info = {} if ended is None else {"exit": ended}
    found = json.loads(FORMATS["json"](Summary((leaking(info=info),))))

    assert found["recording"]["exit"] == ended


def test_a_recording_without_an_end_says_so() -> None:
    recording = leaking(info={}, sealed=False, state="open").recording

    assert ending_sentence(recording).startswith("The end of the program is not in the recording:")


@pytest.mark.parametrize("state", ["sealed", "stopped"])
def test_what_ends_before_its_program_says_nothing_of_it(state: str) -> None:
    sealed = state == "sealed"

    assert ending_sentence(leaking(info={}, sealed=sealed, state=state).recording) == ""


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("raise ValueError('no')", "uncaught exception: ValueError."),
        ("raise SystemExit(3)", "exit code 3."),
        ("import os; os._exit(0)", "or it is still running."),
        ("raise SystemExit", None),
    ],
)
def test_what_a_program_did_last_is_in_its_report(
    end: str, said: str | None, tmp_path: Path
) -> None:
    program = f"import numpy as np\nkept = [np.ones(99) for _ in range(99)]\n{end}\n"
    (tmp_path / "a.py").write_text(program)
    programs.run([sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "a.py"], tmp_path)
    report = programs.command(["report", "a.tlm"], tmp_path)
    shown = report.stdout.decode()

    if said is None:
        assert "ended" not in shown and "The end of" not in shown
    else:
        assert " ".join(shown.split("\n\n")[1].split()).endswith(said)
