"""How often sampling names the line: ``python -m tlmem.scenarios.harness.heap_lines [RUNS]``.

Two programs leak about 1 kB in each of 20,000 iterations, one in native memory (rows of a database
in memory), one in Python objects (strings that the C allocator gives). Each is recorded so many
times (100 by default) with ``--heap``, each time with other samples, and a run is right when the
verdict has the kind of memory and names the line. A third program does the same work and keeps
nothing: it must be stable. Exits with 1 when fewer than 99 of 100 runs are right.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlmem.analysis import analyse
from tlmem.recording.reader import read

RUNS = 100
LEAST_RIGHT = 0.99
ITERATIONS = 20_000
MARKER = "# leaks here"
NATIVE = f"""\
import sqlite3

store = sqlite3.connect(":memory:")
store.execute("create table results (value)")


def keep(result):
    store.execute("insert into results values (?)", (result,))  {MARKER}


for step in range({ITERATIONS}):
    keep(bytes(1_000))
    sum(range(2_000))
"""
PYTHON = f"""\
results = []


def keep(step):
    results.append("x" * 1_000 + str(step))  {MARKER}


for step in range({ITERATIONS}):
    keep(step)
    sum(range(2_000))
"""
HEALTHY = f"""\
import sqlite3

store = sqlite3.connect(":memory:")
store.execute("create table results (value)")
results = [""] * 300


def keep(step):
    store.execute("insert into results values (?)", (bytes(1_000),))
    store.execute("delete from results")
    results[step % 300] = "x" * 1_000 + str(step)


for step in range({ITERATIONS}):
    keep(step)
    sum(range(2_000))
"""


@dataclass(frozen=True)
class Case:
    """A program and the verdict that is right for it; ``line`` is 0 where none leaks."""

    source: str
    outcome: str

    @property
    def line(self) -> int:
        """The line that leaks."""
        lines = self.source.splitlines()
        return next((n for n, text in enumerate(lines, 1) if text.endswith(MARKER)), 0)


CASES = {
    "native": Case(NATIVE, "native"),
    "python": Case(PYTHON, "python"),
    "healthy": Case(HEALTHY, "stable"),
}


def is_right(case: Case, seed: int, folder: Path) -> bool:
    """Whether one run of a program got its verdict, and the line that leaks was named first.

    Args:
        seed: of the samples.
        folder: where the program and its recording go.
    """
    program, file = folder / "program.py", folder / "program.tlm"
    program.write_text(case.source)
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-f", "--heap", f"--heap-seed={seed}"]
    subprocess.run([*command, "-o", str(file), str(program)], check=True)
    analysis = analyse(read(file))
    if analysis.verdict.outcome != case.outcome:
        return False
    named = [found.site for found in analysis.findings if found.kind == f"{case.outcome}-site"]
    lines = [(Path(site.file).name, site.line) for site in named[:1] if site is not None]
    return lines == ([("program.py", case.line)] if case.line else [])


def main(words: Sequence[str]) -> int:
    """Prints how many runs of each program were right; returns 0 when enough were."""
    runs = int(words[0]) if words else RUNS
    enough = True
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            right = sum(is_right(case, seed, Path(folder)) for seed in range(1, runs + 1))
            enough = enough and right >= LEAST_RIGHT * runs
            sys.stdout.write(f"{name}: {right} of {runs} runs are right\n")
            sys.stdout.flush()
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
