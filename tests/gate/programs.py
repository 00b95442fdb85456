"""Recordings and calls of ``tlmem check`` that several test files share."""

import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from support import programs

from tlmem.cli import main

LEAK = """\
import time

import numpy as np
import tlmem

kept = []


def step(i):
    work = np.ones(2000) * i
    kept.append(work[:500].copy())
    return work.sum()


for i in range(300):
    tlmem.mark("epoch", i)
    step(i)
    time.sleep(0.003)
"""
"""Keeps 4000 bytes in each of 300 epochs, at line 11.

As all programs here, it goes on for about a second of steps, not until some time has passed: a
machine that stalls for half of that leaves enough to be judged. Nothing per second is asked of it.
"""
LEAK_LINE, LEAK_BYTES, EPOCHS = 11, 4000, 300
HEALTHY = LEAK.replace("    kept.append(work[:500].copy())\n", "    work[:500].copy()\n")
MISUSE = """\
import time

import tlmem

for i in range(300):
    tensor = tlmem.ones(100)
    tensor.free()
    time.sleep(0.003)
try:
    tensor.free()
except tlmem.DoubleFree:
    pass
"""


def recorded(folder: Path, text: str, name: str) -> Path:
    """The recording of a program, beside its script."""
    folder.mkdir(exist_ok=True)
    script = folder / f"{name}.py"
    script.write_text(text)
    done = programs.recorded([script.name], folder, options=("-q", "-o", f"{name}.tlm"))
    assert done.returncode == 0, done.stderr.decode()
    return folder / f"{name}.tlm"


def tlmem(
    *words: object, cwd: Path, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """``tlmem WORDS``, away from any pyproject.toml of ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GITHUB_", "CI_"))}
    return subprocess.run(
        [sys.executable, "-m", "tlmem", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**kept, "OPENBLAS_NUM_THREADS": "1", **(environment or {})},
        timeout=programs.LONGEST_S,
        check=False,
    )


def check(*words: object, cwd: Path) -> tuple[int, dict]:
    """Exit code and JSON of ``tlmem check WORDS``, run in this process."""
    out, error = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(error):
        code = main(["check", "--format", "json", *map(str, words)])
    assert bool(error.getvalue()) == (code != 0)
    return code, json.loads(out.getvalue()) if out.getvalue() else {}


def states(found: dict) -> dict[str, str]:
    """Budget -> state, of the first program."""
    return {row["name"]: row["state"] for row in found["programs"][0]["budgets"]}
