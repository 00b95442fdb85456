"""Runs commands by turns and says what each took: CPU time, wall time, time to exit, memory.

Machines drift: a case is compared with the baseline of its own round, and a ratio is the median of
the rounds' ratios, not the ratio of two medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).resolve().parent / "programs"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PEAK_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Settings:
    """What is asked of every part; no programs means all of them."""

    scale: float
    rounds: int
    folder: Path
    show: Callable[[str], None]
    programs: Sequence[str] = ()


@dataclass(frozen=True)
class Run:
    """One finished process.

    ``cpu_s`` is user and system time of all its threads and children; ``body_s`` and ``exit_s`` are
    from the first to the last line of the program, and from there to the end of the process (None
    when it does not tell them).
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    body_s: float | None
    exit_s: float | None
    output: str


def run(command: Sequence[str | Path], folder: Path, changes: dict[str, str] | None = None) -> Run:
    """Runs a command with single-threaded BLAS, and with changes to the environment.

    Raises:
        RuntimeError: it failed; the text holds what it printed.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST_"))}
    environment.update({**dict.fromkeys(THREADS, "1"), **(changes or {})})
    printed = folder / "printed.txt"
    with open(printed, "w+b") as file:
        began = time.monotonic_ns()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic_ns()
        process.returncode = os.waitstatus_to_exitcode(status)
    output = printed.read_text(encoding="utf-8", errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{output}")
    times = _own_times(output)
    return Run(
        wall_s=(ended - began) / 1e9,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * PEAK_UNIT_BYTES,
        body_s=(times[1] - times[0]) / 1e9 if times else None,
        exit_s=(ended - times[1]) / 1e9 if times else None,
        output=output,
    )


def _own_times(output: str) -> tuple[int, int] | None:
    for line in output.splitlines():
        words = line.split()
        if len(words) == 2 and all(word.isdecimal() for word in words):
            return int(words[0]), int(words[1])
    return None


def run_for_json(command: Sequence[str | Path], folder: Path) -> Any:
    """What a program of ours prints as its last line."""
    return json.loads(run(command, folder).output.splitlines()[-1])


def interleave(
    cases: dict[str, Callable[[], Run]], rounds: dict[str, int], show: Callable[[str], None]
) -> dict[str, list[Run | None]]:
    """Runs A B C A B C ...; a case with fewer rounds sits out the last ones.

    Returns:
        For each case its run of every round, None where it sat out.
    """
    found: dict[str, list[Run | None]] = {name: [] for name in cases}
    for turn in range(max(rounds.values())):
        for name, work in cases.items():
            done = work() if turn < rounds[name] else None
            found[name].append(done)
            if done:
                show(f"{name}: {done.cpu_s:.2f} s CPU, {done.wall_s:.2f} s")
    return found


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values), len(values))


def spread(runs: Sequence[Run | None], what: str) -> Spread:
    """One attribute over the runs that took place."""
    return Spread.of([getattr(done, what) for done in runs if done])


def ratio(runs: Sequence[Run | None], baseline: Sequence[Run | None], what: str) -> Spread:
    """Each run's attribute over that of the baseline in the same round."""
    pairs = zip(runs, baseline, strict=True)
    return Spread.of([getattr(a, what) / getattr(b, what) for a, b in pairs if a and b])


def difference(runs: Sequence[Run | None], baseline: Sequence[Run | None], what: str) -> Spread:
    """Each run's attribute less that of the baseline in the same round."""
    pairs = zip(runs, baseline, strict=True)
    return Spread.of([getattr(a, what) - getattr(b, what) for a, b in pairs if a and b])


def tool(name: str) -> list[str]:
    """How a command of this environment is started: its script, as users do, else ``-m``."""
    script = Path(sysconfig.get_path("scripts")) / name
    return [str(script)] if script.exists() else [sys.executable, "-m", name]
