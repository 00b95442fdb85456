"""Runs small programs plainly and recorded, for tests that compare or read the outcome."""

import io
import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tlmem.cli import main

LONGEST_S = 600
"""Ends what hangs. A machine that does much else takes minutes for seconds of work."""


HEAP = os.environ.get("TLMEM_TEST_HEAP", "")
"""Records every program that is compared with ``--heap`` of this size; empty: one in four."""


def heap_options() -> tuple[str, ...]:
    """``--heap`` in one of four tests, by their names: what the heap adds must not be seen either.

    A small size makes short programs have samples.
    """
    name = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    chosen = HEAP or ("20kB" if zlib.crc32(name.encode()) % 4 == 0 else "")
    return (f"--heap={chosen}",) if chosen else ()


def environment_of(changes: dict[str, str] | None) -> dict[str, str]:
    """This process' environment without what a test run puts there, and with ``changes``."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST_", "COVERAGE", "PYTHON"))
    }
    return {**kept, "OPENBLAS_NUM_THREADS": "1", **(changes or {})}


def run(
    command: list[str],
    folder: Path,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a command in ``folder`` and returns its code and output."""
    return subprocess.run(
        command,
        cwd=folder,
        input=stdin,
        capture_output=True,
        env=environment_of(environment),
        timeout=LONGEST_S,
        check=False,
    )


def plain(
    arguments: list[str],
    folder: Path,
    flags: list[str] | None = None,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """``python [FLAGS] ARGUMENTS``."""
    return run([sys.executable, *(flags or []), *arguments], folder, stdin, environment)


def command(
    words: Sequence[object], folder: Path, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """``tlmem WORDS`` within this process, for commands that read recordings.

    The start of an interpreter with pandas takes longer than most of them. Tests of what a process
    does (its streams, signals and end) start one with ``plain``.
    """
    given = [str(word) for word in words]
    out, error = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", errors, write_through=True)
        for errors in ("strict", "backslashreplace")
    )
    with (
        chdir(folder),
        patch.dict(os.environ, environment_of(environment), clear=True),
        redirect_stdout(out),
        redirect_stderr(error),
    ):
        try:
            code = main(given)
        except SystemExit as left:
            code = int(left.code or 0)
    written = [stream.detach().getvalue() for stream in (out, error)]
    return subprocess.CompletedProcess(given, code, *written)


def recorded(
    arguments: list[str],
    folder: Path,
    flags: list[str] | None = None,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
    options: tuple[str, ...] = ("-q",),
) -> "subprocess.CompletedProcess[bytes]":
    """``python [FLAGS] -m tlmem record [OPTIONS] ARGUMENTS``."""
    command = [sys.executable, *(flags or []), "-m", "tlmem", "record", *options, *arguments]
    return run(command, folder, stdin, environment)


def assert_same(
    arguments: list[str],
    folder: Path,
    flags: list[str] | None = None,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> None:
    """Asserts that exit code, stdout and stderr are the same with and without recording."""
    first = plain(arguments, folder, flags, stdin, environment)
    second = recorded(arguments, folder, flags, stdin, environment, ("-q", *heap_options()))

    assert (second.returncode, second.stdout.decode(), second.stderr.decode()) == (
        first.returncode,
        first.stdout.decode(),
        first.stderr.decode(),
    )
