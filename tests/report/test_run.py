"""``tlmem.report.run``: where a report goes, and what is said when there is none."""

import json
import os

import pytest
from support.traces import Program

from tlmem import report
from tlmem.analysis import analyse
from tlmem.report.summary import Process, Summary


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path is a small simulated program."""
    program = Program()
    program.alloc(10)
    recording = program.recording()
    summary = Summary((Process(recording, analyse(recording)),))
    monkeypatch.setattr(report, "summarise", lambda paths, source_roots: summary)


@pytest.mark.usefixtures("one")
def test_a_report_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.run(["x.tlm"], "json") == 0
    printed = capsys.readouterr()

    assert json.loads(printed.out)["schema"] == 1
    assert printed.err == ""


@pytest.mark.usefixtures("one")
def test_a_report_goes_to_a_file(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.txt"

    assert report.run(["x.tlm"], "text", str(out)) == 0
    assert out.read_text().startswith("Cannot judge: ")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"tlmem: wrote the report to {out}\n")


@pytest.mark.usefixtures("one")
def test_an_output_that_cannot_be_written_is_one_sentence(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.run(["x.tlm"], "text", str(tmp_path / "no" / "report.txt")) == 2
    assert_one_sentence(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("content", "code"), [(None, 2), (b"", 3), (b"hello, this is no recording\n" * 100, 2)]
)
def test_what_is_no_recording_is_one_sentence(
    content: bytes | None, code: int, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.tlm"
    if content is not None:
        path.write_bytes(content)

    assert report.run([str(path)], "text") == code
    assert_one_sentence(capsys.readouterr().err)


def test_a_directory_is_one_sentence(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.run([os.fspath(tmp_path)], "text") == 2
    assert_one_sentence(capsys.readouterr().err)


def assert_one_sentence(text: str) -> None:
    assert text.startswith("tlmem: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text
