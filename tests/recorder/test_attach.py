"""``tlmem attach``: real processes that were started by plain Python."""

import functools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import programs

import tlmem

pytest.importorskip("tlmem._native", reason="attaching records, which needs the extension")
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="attach is Linux only"),
    pytest.mark.skipif(
        sys.version_info < (3, 14) and shutil.which("gdb") is None,
        reason="before Python 3.14 attaching needs gdb: apt-get install gdb",
    ),
]


@functools.cache
def cannot_write_registers() -> bool:
    """Whether this gdb cannot write the vector registers of this processor: gdb 13 with AMX."""
    if sys.version_info >= (3, 14):
        return False
    process = subprocess.Popen(["sleep", "60"])
    try:
        words = ["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex", "set var $xmm0.uint128 = 1"]
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    finally:
        process.kill()
        process.wait()
    return "Couldn't write" in done.stderr


GROWS = """
import sys, time
import numpy as np
kept = []
before = [np.ones(10) for _ in range(100_000)]
print("ready", flush=True)
while not sys.stdin.closed:
    for _ in range(50):
        kept.append(np.ones(200))
    if before:
        before.pop()
    time.sleep(0.01)
"""
WAITS = """
import sys
print("ready", flush=True)
sys.stdin.readline()
print("went on", sorted(name for name in vars() if not name.startswith("__")), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def can_call() -> None:
    if cannot_write_registers():
        pytest.skip("this gdb cannot write the registers of this processor: use gdb 14 or newer")


@pytest.fixture
def started(tmp_path: Path) -> Iterator:
    """Starts programs by plain Python, and ends them."""
    running: list[subprocess.Popen[str]] = []

    def start(text: str) -> "subprocess.Popen[str]":
        script = tmp_path / "serve.py"
        script.write_text(text)
        process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def attach(folder: Path, *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``tlmem attach``."""
    done = programs.command(("attach", *map(str, words)), folder)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.usefixtures("can_call")
def test_a_running_program_is_recorded_until_it_is_told_to_stop(started, tmp_path: Path) -> None:
    process = started(GROWS)

    begun = attach(tmp_path, process.pid, "-o", "run.tlm")
    twice = attach(tmp_path, process.pid, "-o", "other.tlm")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(tlmem.read(tmp_path / "run.tlm").objects) > 400:
            break
        time.sleep(0.1)
    ended = attach(tmp_path, "--stop", process.pid)
    again = attach(tmp_path, "--stop", process.pid)

    assert begun[0] == ended[0] == 0, (begun, ended)
    assert twice[0] == again[0] == 2
    assert "is being recorded" in twice[2] and not (tmp_path / "other.tlm").exists()
    assert "nothing was recording it" in again[2]
    assert process.poll() is None
    recording = tlmem.read(tmp_path / "run.tlm")
    lines = {recording.blame(site)["line"] for site in recording.objects.born_site.unique()}
    report = programs.command(("report", "run.tlm"), tmp_path).stdout.decode()
    assert (recording.sealed, recording.pid, lines) == (True, process.pid, {9})
    assert recording.unknown_frees > 0  # of arrays that were there before
    assert "what it allocated before is not counted" in report
    assert json.loads(json.dumps(recording.info))["command"].endswith("serve.py")


@pytest.mark.parametrize("text", [GROWS, WAITS], ids=["sleeps", "waits"])
def test_a_gdb_that_cannot_write_registers_leaves_the_program_as_it_was(
    started, tmp_path: Path, text: str
) -> None:
    if not cannot_write_registers():
        pytest.skip("this gdb can write the registers of this processor")
    process = started(text)

    for _ in range(5):
        code, _, said = attach(tmp_path, process.pid, "-o", "run.tlm")
        assert (code, "cannot write all registers" in said) == (2, True)
    time.sleep(0.5)

    assert process.poll() is None
    process.stdin.write("\n")
    process.stdin.flush()
    assert text is GROWS or process.stdout.readline() == "went on ['sys']\n"
    assert not (tmp_path / "run.tlm").exists()


@pytest.mark.usefixtures("can_call")
def test_a_main_thread_that_waits_is_left_as_it_was(started, tmp_path: Path) -> None:
    process = started(WAITS)

    code, _, said = attach(tmp_path, process.pid, "--timeout", "0.3", "-o", "run.tlm")
    process.stdin.write("\n")
    process.stdin.flush()

    assert code == 2
    assert f"the main thread of process {process.pid} ran no Python code" in said
    assert process.stdout.readline() == "went on ['sys']\n"
    assert not (tmp_path / "run.tlm").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("99999999",), "there is no process 99999999"),
        (("0",), "'0' is not the number of a process"),
        (("x",), "PID needs a process number, not 'x'"),
        (("--stop", "99999999", "-o", "x"), "--stop ends a recording"),
        (("99999999", "--max-file", "much"), "'much' is not a size"),
    ],
)
def test_what_cannot_be_attached_to_is_one_sentence(
    words: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    code, _, said = attach(tmp_path, *words)

    assert (code, why in said, "Traceback" in said) == (2, True, False)


def test_a_process_without_python_is_refused(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        code, _, said = attach(tmp_path, process.pid)
    finally:
        process.kill()
        process.wait()

    assert (code, "runs no Python 3" in said) == (2, True)
