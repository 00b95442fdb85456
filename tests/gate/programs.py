"""Recordings and calls of ``tlmem check`` that several test files share."""

import io
import json
import os
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

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
    """``tlmem WORDS``, away from any pyproject.toml of ours; a process of its own records."""
    given = [str(word) for word in words]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GITHUB_", "CI_"))}
    with patch.dict(os.environ, kept, clear=True):
        if given[0] == "check" and "--repeat" not in given:
            done = programs.command(given, cwd, environment)
        else:
            done = programs.plain(["-m", "tlmem", *given], cwd, environment=environment)
    said = (done.stdout.decode(), done.stderr.decode())
    return subprocess.CompletedProcess(given, done.returncode, *said)


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
