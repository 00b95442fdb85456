"""The same events give the same findings: of a file still written, of a killed and a sealed one.

Each program stops itself (SIGSTOP) when its work is done, with all that it holds. What is in the
file then is read while the program is there, or copied: a copy has every byte that a kill would
leave. Then the program goes on to its end and seals the file, or is killed.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.programs import environment_of
from tlmem.scenarios.harness import catalog

import tlmem
from tlmem.analysis import Analysis, analyse

ALL = catalog.scenarios()
NUMPY = ["dict-cache", "native-malloc", "python-objects", "sawtooth", "slow-leak-in-noise"]
RUNTIME = [
    "driver-growth",
    "forgotten-promote",
    "over-retain",
    "pool-never-read",
    "retained-graphs",
    "running-total",
    "use-after-scope",
    "wrong-device-fixed",
]
ATTEMPTS = 5
LONGEST_WAIT = 0.1
"""A program that stands still for a longer part of its run, on a busy machine, is not the same any
more: its memory has stopped growing, and its holders are looked for once again."""
STOPPING = """
import builtins, os, runpy, signal, sys

def stop(*words):
    os.kill(os.getpid(), signal.SIGSTOP)

builtins.print = stop
runpy.run_path(sys.argv[1], run_name="__main__")
stop()
"""


@contextmanager
def stopped(name: str, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A scenario whose work is done, recorded to ``a.tlm``, before its frames unwind."""
    (folder / "stopping.py").write_text(STOPPING, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", "stopping.py"]
    process = subprocess.Popen(
        [*command, str(ALL[name].path)], cwd=folder, env=environment_of(None)
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        yield process
    finally:
        process.kill()
        process.wait()


def found_in(file: Path) -> tuple[bool, Analysis]:
    """Whether a file is sealed, and all that is found in it."""
    recording = tlmem.read(str(file))
    return recording.complete, analyse(recording)


def gists(analysis: Analysis) -> list[tuple[object, ...]]:
    """Errors and warnings, without the sentences, whose seconds are those of the whole recording.

    What is merely alive at the end differs: the sealed file has the end of every variable, too.
    """
    return [
        (found.kind, found.severity, found.site, found.count, found.object, found.stack)
        for found in analysis.findings
        if found.severity != "info"
    ]


def go_on(process: "subprocess.Popen[bytes]") -> None:
    """Lets a stopped program come to its end."""
    while True:
        process.send_signal(signal.SIGCONT)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return


def copied_and_sealed(name: str, folder: Path) -> tuple[Path, Path]:
    """A copy of the live file of a scenario whose work is done, and the file when it has ended."""
    with stopped(name, folder) as process:
        shutil.copyfile(folder / "a.tlm", folder / "copy.tlm")
        go_on(process)
    assert process.returncode == 0
    return folder / "copy.tlm", folder / "a.tlm"


def wait_of(copy: Path, sealed: Path) -> float:
    """The share of a whole run that came after its file was copied."""
    return 1 - tlmem.read(str(copy)).seconds / tlmem.read(str(sealed)).seconds


@pytest.mark.parametrize("name", [*NUMPY, *RUNTIME])
def test_a_copy_of_the_live_file_and_the_sealed_one_say_the_same(name: str, tmp_path: Path) -> None:
    for attempt in range(ATTEMPTS):
        (tmp_path / str(attempt)).mkdir()
        files = copied_and_sealed(name, tmp_path / str(attempt))
        if wait_of(*files) < LONGEST_WAIT:
            break
    (complete, live), (ended, sealed) = found_in(files[0]), found_in(files[1])

    assert (complete, ended) == (False, True)
    assert live.verdict.outcome == sealed.verdict.outcome == ALL[name].outcome
    assert gists(live) == gists(sealed)


@pytest.mark.parametrize("name", ["dict-cache", "over-retain", "sawtooth"])
def test_what_is_found_before_a_kill_is_found_after_it(name: str, tmp_path: Path) -> None:
    with stopped(name, tmp_path) as process:
        before = found_in(tmp_path / "a.tlm")
        process.kill()
        assert process.wait() == -signal.SIGKILL

    assert before == found_in(tmp_path / "a.tlm")
    assert before[1].verdict.outcome == ALL[name].outcome
