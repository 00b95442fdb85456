"""Runs a program that attacks its interpreter plainly and recorded, and compares every byte.

The two runs take place in a folder of the same name, one after the other, so that paths and what
the program leaves behind are the same for both.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from support import programs

import tlmem
from tlmem.errors import EmptyRecording

LONG = os.environ.get("TLMEM_HOSTILE") == "long"
SPOKEN = b"tlmem: "
"""How each line begins that the recorder adds at the end of stderr."""


@dataclass(frozen=True)
class Program:
    """A program and how it is run.

    Attributes:
        source: of ``program.py``.
        words: the command line after ``python`` and its flags.
        flags: options of the interpreter.
        shell: commands of a shell before the program is started from it, such as ``ulimit -n 24``.
        redirect: what the shell redirects for the program, such as ``<&-``.
        files: texts of other files beside it, by name.
        spoken: the recorder's own lines are asked for, too.
        state: of the recording; empty if any will do.
        complete: it has every event.
        long: not in every run.
    """

    source: str = ""
    words: tuple[str, ...] = ("program.py",)
    flags: tuple[str, ...] = ()
    shell: str = ""
    redirect: str = ""
    stdin: bytes = b""
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    spoken: bool = False
    state: str = "sealed"
    complete: bool = True
    long: bool = False


def cases(table: dict[str, "str | Program"]) -> Iterator[object]:
    """The parameters of a test over a table of programs; their names are claims."""
    for name, entry in table.items():
        program = entry if isinstance(entry, Program) else Program(entry)
        marks = [pytest.mark.long] if program.long else []
        yield pytest.param(program, id=name.replace(" ", "-"), marks=marks)


def assert_undisturbed(program: Program, folder: Path) -> list[tlmem.Recording]:
    """Asserts that recording changes nothing that can be seen, and that the files can be read.

    Returns:
        The recordings, that of the first process at the front.
    """
    expected = _run(program, folder, [])
    found = []
    for spoken in [False, True] if LONG else [program.spoken]:
        for old in folder.glob("run*.tlm"):
            old.unlink()
        options = ["-m", "tlmem", "record", "-o", str(folder / "run.tlm")]
        options += programs.heap_options()
        ended = _run(program, folder, [*options, *([] if spoken else ["-q"])])
        stderr = _without_own_lines(ended.stderr) if spoken else ended.stderr

        assert (ended.returncode, _text(ended.stdout), _text(stderr)) == (
            expected.returncode,
            _text(expected.stdout),
            _text(expected.stderr),
        )
        found = _read_all(folder, program)
    return found


def _run(
    program: Program, folder: Path, recorder: list[str]
) -> "subprocess.CompletedProcess[bytes]":
    here = folder / "here"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    (here / "program.py").write_text(textwrap.dedent(program.source), encoding="utf-8")
    for name, text in program.files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(textwrap.dedent(text), encoding="utf-8")
    command = [sys.executable, *program.flags, *recorder, *program.words]
    if program.shell or program.redirect:
        script = f'{program.shell or ":"}; exec "$@" {program.redirect}'
        command = ["sh", "-c", script, "sh", *command]
    with patch.object(programs, "LONGEST_S", 60):
        return programs.run(command, here, program.stdin, program.environment)


def _text(written: bytes) -> str:
    """What was written, without addresses: they differ from run to run."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", written.decode("utf-8", "backslashreplace"))


def _without_own_lines(stderr: bytes) -> bytes:
    """What stands before the lines at the end that are the recorder's."""
    lines = stderr.splitlines(keepends=True)
    while lines and lines[-1].startswith(SPOKEN):
        lines.pop()
    return b"".join(lines)


def _read_all(folder: Path, program: Program) -> list[tlmem.Recording]:
    """Reads every recording of a run; the first one's end is the one that was expected."""
    recordings = []
    for path in sorted(folder.glob("run*.tlm"), key=lambda path: (len(path.name), path.name)):
        try:
            recording = tlmem.read(path)
        except EmptyRecording:
            continue
        if program.complete:
            assert (recording.problems, recording.lost_events) == ([], 0), path.name
        recordings.append(recording)
    if program.state:
        assert [each.state for each in recordings[:1]] == [program.state]
    return recordings
