"""The processes of a soak: workers that make the runs, and one that keeps a core busy.

The soak asks a ``Worker``, which passes one JSON object a line to a process of its own (``main``)
and reads one back. That process imports once what reads and judges and makes many runs; it ends
when its input does, so that none is left when the soak is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlmem.scenarios.harness.catalog import ScenarioFailed, record

from tlmem.errors import TlmemError

from .judging import FAILED, Judgement, judgements
from .plan import Job, all_programs, with_seed

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
                [sys.executable, "-m", "tlmem.scenarios.harness.soak.workers"],
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


def main() -> int:
    """Serves until the end of standard input."""
    programs = {scenario.name: (group, scenario) for group, scenario in all_programs()}
    for asked in requests():
        group, scenario = programs[asked["name"]]
        job = Job(group, with_seed(group, scenario, asked["seed"]), asked["seed"])
        began = time.monotonic()
        kept = Path(asked["kept"]) if asked["kept"] else None
        found = run(job, asked["judges"], kept, Path(asked["wrong"]))
        answer = {
            "judged": {judge: asdict(judgement) for judge, judgement in found.items()},
            "seconds": round(time.monotonic() - began, 3),
            "load_average": round(os.getloadavg()[0], 2),
        }
        print(json.dumps(answer), flush=True)
    return 0


def requests() -> Iterator[dict[str, Any]]:
    """What is asked for, in order."""
    for line in sys.stdin:
        yield json.loads(line)


def run(job: Job, judges: Sequence[str], kept: Path | None, wrong: Path) -> dict[str, Judgement]:
    """Records one program and judges the recording.

    Args:
        kept: a folder for what is recorded; what is there already is not recorded again. None:
            nothing is kept.
        wrong: a file for the recording when an answer about it is wrong.
    """
    with tempfile.TemporaryDirectory(
        prefix="tlmem-soak-", dir=kept.parent if kept else None
    ) as made:
        folder = kept if kept and kept.exists() else Path(made, "recorded")
        file = folder / f"{job.scenario.name}.tlm"
        try:
            if not file.exists():
                folder.mkdir()
                record(job.scenario, file, {"PYTHONHASHSEED": str(job.seed)})
                if kept:
                    file = folder.rename(kept) / file.name
            found = judgements(job, file, judges)
        except (ScenarioFailed, TlmemError) as error:
            found = dict.fromkeys(judges, Judgement(False, FAILED, str(error)))
        if file.exists() and not all(judgement.right for judgement in found.values()):
            shutil.copyfile(file, wrong)
        return found


if __name__ == "__main__":
    sys.exit(main())
