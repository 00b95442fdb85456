"""Programs in C with probes, or on the runtime: how they are built, what they recorded."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support import programs

import tlmem
from tlmem.events import Device, Kind
from tlmem.recorder import linking

ROOT = Path(__file__).resolve().parents[2]
OVERRETAIN = ROOT / "native" / "examples" / "overretain"
STEPS = OVERRETAIN / "steps.c"
TRAIN = ROOT / "native" / "examples" / "runtime" / "train.c"
ENDINGS = ROOT / "tests" / "support" / "endings.c"
ROUNDS = 20000
"""Objects that the program of endings.c makes and frees before it ends in some way."""
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
"""Runs a program that the environment records to ``run.tlm``; keywords change the environment."""


def compiler(language: str = "c") -> list[str]:
    """The compiler as a command; skips where there is none."""
    given, usual = os.environ.get("CXX" if language == "c++" else "CC"), ("g++", "c++")
    usual = usual if language == "c++" else ("gcc", "cc")
    found = shlex.split(given or "") or [name for name in usual if shutil.which(name)][:1]
    if not found:
        pytest.skip(f"no compiler for {language} here; set {'CXX' if language == 'c++' else 'CC'}")
    return found


def build(out: Path, sources: list[Path], *flags: str) -> Path:
    """Builds a program against the installed headers."""
    command = [*compiler(), "-g", "-O1", "-pthread", *WARNINGS, f"-I{linking.get_include()}"]
    command += [*map(str, sources), *flags, "-o", str(out)]
    command += ["-ldl"] if sys.platform == "linux" else []
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"{shlex.join(command)}\n{made.stderr}"
    return out


def line_with(words: str, source: Path = STEPS) -> int:
    """The line of a program that says so."""
    lines = source.read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if words in line)


def report_of(path: Path) -> dict:
    """What ``tlmem report`` says about a recording."""
    told = programs.command(["report", "--format", "json", path], path.parent)
    assert told.returncode == 0, told.stderr.decode()
    return json.loads(told.stdout)


def probes(recording: tlmem.Recording, kind: Kind) -> pd.DataFrame:
    """Events of this kind that came from probes, with file and line."""
    events = recording.events
    events = events[(events["kind"] == kind) & (events["device"] == Device.PROBE)]
    return events.join(recording.sites[["file", "line", "function", "parent"]], on="site")
