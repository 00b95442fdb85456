"""The processes of a soak: workers that make the runs, and one that keeps a core busy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .judging import FAILED

RUNS_OF_A_WORKER = 200
"""Then it is replaced, so that no soak depends on what a worker gathers."""

COMPANY = """\
import os, time
parent = os.getppid()
while os.getppid() == parent:
    until = time.monotonic() + 0.006
    while time.monotonic() < until:
        pass
    time.sleep(0.014)
"""
"""Busy for three tenths of the time, for as long as its parent lives."""


class Worker:
    """One worker, started when it is first asked and again after it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._served = 0

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; says so when the worker died of it."""
        if self._process is None or self._served == RUNS_OF_A_WORKER:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tlmem.scenarios.harness.soak.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # an interrupt is for the soak; its workers finish a run
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        self._served += 1
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = process.wait()
        self.close()
        said = f"the worker ended with exit code {code}"
        lost = {"right": False, "outcome": FAILED, "said": said, "wolves": []}
        judged = dict.fromkeys(request.get("judges", ()), lost)
        return {"judged": judged, "seconds": 0.0, "load_average": 0.0}

    def close(self) -> None:
        """Lets the worker end, which it does when its run is over."""
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._process, self._served = None, 0


@contextmanager
def company(wanted: bool) -> Iterator[subprocess.Popen[bytes] | None]:
    """A process that keeps a core busy for part of the time, if it is wanted."""
    if not wanted:
        yield None
        return
    process = subprocess.Popen(
        [sys.executable, "-c", COMPANY], stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
