"""Signals reach a recorded program as they reach any other, and its end is the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import LONGEST_S, environment_of

import tlmem

READY = "__import__('os').write(1, b'ready\\n')"  # a handler may print while print is at work
# Not signal.pause(), which would wait for ever for a signal that came just before it.
WAIT = "for _ in iter(int, 1): __import__('time').sleep(0.01)"
WAITING = f"""
import signal, sys
import numpy as np
kept = [np.empty(3000, np.uint8) for _ in range(100)]
{READY}
{WAIT}
"""
HANDLING = f"""
import signal, sys
def handle(number, frame):
    print("handled", number, frame is not None, flush=True)
    sys.exit(6)
signal.signal(signal.SIGTERM, handle)
{READY}
{WAIT}
"""
CATCHING = f"""
try:
    {READY}
    {WAIT}
except KeyboardInterrupt:
    print("caught")
"""
PACKING = f"""
import numpy as np, threading
threading.Thread(target=lambda: [np.empty(500) for _ in iter(int, 1)], daemon=True).start()
{READY}
while True:
    np.empty(1000)
"""
GROUP = f"""
import os, signal, sys
listen, tell = os.pipe()
child = os.fork()
if child == 0:
    try:
        os.write(tell, b"x")
        {WAIT}
    except KeyboardInterrupt:
        os._exit(3)
os.read(listen, 1)
try:
    {READY}
    {WAIT}
except KeyboardInterrupt:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def heed_signals() -> None:
    """In the new process: no signal is ignored because the tests were started by ``nohup``."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def run_until_ready(
    command: list[str], folder: Path, number: int, group: bool = False
) -> "tuple[int, bytes, bytes]":
    """Starts a program, sends it a signal as soon as it says ``ready``; its code and output."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment_of(None),
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    (os.killpg if group else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=LONGEST_S)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("program", "number"),
    [
        (WAITING, signal.SIGINT),
        (WAITING, signal.SIGTERM),
        (WAITING, signal.SIGHUP),
        (WAITING, signal.SIGQUIT),
        (WAITING, signal.SIGKILL),
        (HANDLING, signal.SIGTERM),
        (CATCHING, signal.SIGINT),
        (PACKING, signal.SIGTERM),
    ],
)
def test_signal_has_the_same_effect(program: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "program.py"]
    code, out, err = run_until_ready(command, tmp_path, number)
    expected_code, expected_out, expected_err = run_until_ready(
        command[:1] + ["program.py"], tmp_path, number
    )

    assert (code, out) == (expected_code, expected_out)
    # The line that was interrupted may be the one that said "ready" or the next.
    assert err.splitlines()[:1] == expected_err.splitlines()[:1]
    assert err.splitlines()[-1:] == expected_err.splitlines()[-1:]


def test_interrupt_of_the_whole_group_reaches_parent_and_child(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(GROUP, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "program.py"]

    assert run_until_ready(command, tmp_path, signal.SIGINT, group=True) == (0, b"3\n", b"")


@pytest.mark.parametrize(("number", "state"), [(signal.SIGINT, "sealed"), (signal.SIGTERM, "open")])
def test_recording_of_an_interrupted_program_is_whole(
    number: int, state: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(WAITING, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "program.py"]
    run_until_ready(command, tmp_path, number)
    recording = tlmem.read(tmp_path / "a.tlm")

    assert recording.state == state
    assert int((recording.objects.size_bytes == 3000).sum()) == 100


def test_interrupt_is_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WAITING, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-o", "a.tlm", "program.py"]
    code, _, err = run_until_ready(command, tmp_path, signal.SIGINT)
    lines = err.decode().splitlines()

    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in lines[-3]
    assert [line.startswith("tlmem: ") for line in lines[-2:]] == [True, True]
