"""Commands whose stdout or stderr is closed, full, or has no reader: never a traceback of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.story import write_story

TLMEM = [sys.executable, "-m", "tlmem"]
LISTS = [
    ["--help"],
    ["--version"],
    ["record", "--help"],
    ["report", "--help"],
    ["scenario", "list"],
]
LISTS += [["check", "--list-budgets"], ["doctor", "--libs"]]


def run(words: list[str], redirect: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = f'exec "$@" {redirect}'
    command = ["sh", "-c", line, "sh", *TLMEM, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_reader_that_has_left_is_no_error(words: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*TLMEM, *words], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["report", "x.tlm"], ["scenario", "list"], ["--help"]])
@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_what_cannot_be_written_to_stdout_is_one_sentence(
    words: list[str], redirect: str, tmp_path: Path
) -> None:
    if redirect.endswith("/dev/full") and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    write_story(tmp_path / "x.tlm")

    done = run(words, redirect, tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("tlmem: stdout cannot be written (")
    assert done.stderr.count("\n") == 1


def test_without_stdout_a_report_goes_to_its_file(tmp_path: Path) -> None:
    write_story(tmp_path / "x.tlm")

    done = run(["report", "x.tlm", "-o", "out.txt"], ">&-", tmp_path)

    assert (done.returncode, done.stderr) == (0, "tlmem: wrote the report to out.txt\n")
    assert (tmp_path / "out.txt").read_text().startswith("Leak at train.py:12: ")


def test_without_stderr_the_exit_code_still_tells(tmp_path: Path) -> None:
    assert run(["report", "x.tlm"], "2>&-", tmp_path).returncode == 2
