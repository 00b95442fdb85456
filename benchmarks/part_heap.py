"""Part ``heap``: what sampling native memory and Python's objects costs, beside others."""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measuring import PROGRAMS, Run, Settings, interleave, run, tool
from benchmarks.pages import Section, table
from benchmarks.targets import number

PROGRAM_SCALES = {
    "pure_python": 0.4,
    "small_objects": 0.4,
    "storm": 0.4,
    "mlp": 0.4,
    "pandas_pipeline": 0.4,
}
MALLOC = "malloc_storm"
TITLES = {
    "pure_python": "pure Python",
    "small_objects": "small objects",
    "storm": "allocation storm",
    "mlp": "NumPy MLP",
    "pandas_pipeline": "pandas pipeline",
    MALLOC: "`malloc` and `free` in C",
}
PLAIN, RECORD, HEAP = "python", "tlmem record -q", "tlmem record -q --heap"
MEMRAY, OBJECTS = "memray run", "memray run --trace-python-allocators"
SCALENE, TRACE = "scalene run", "tracemalloc, 1 frame"
PACKAGES = {MEMRAY: "memray", OBJECTS: "memray", SCALENE: "scalene"}


def measure(settings: Settings) -> Section:
    """CPU time of each program under each tool, of plain Python's in the same round."""
    section = Section("heap")
    library = _library(settings)
    names = [*PROGRAM_SCALES, *([MALLOC] if library else [])]
    done = {name: _run_all(name, library, settings) for name in names}
    rows = []
    for case in next(iter(done.values())):
        cells = [number(_ratio(name, done[name], case, PLAIN), "x") for name in names]
        rows.append([case, *cells])
    beside = {name: _ratio(name, done[name], HEAP, RECORD) for name in names}
    rows.append([f"`{HEAP}` of `{RECORD}`", *(number(value, "x") for value in beside.values())])
    section.values |= {f"heap, {name}": value for name, value in beside.items()}
    section.blocks += [
        "CPU time of plain Python's: medians of the rounds' ratios, of whole programs, and for the "
        "loop in C of the loop alone.",
        table(["", *(TITLES[name] for name in names)], rows),
    ]
    return section


def _library(settings: Settings) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        settings.show("there is no C compiler for the loop in C")
        return None
    made = settings.folder / "malloc_storm.so"
    source = PROGRAMS / "malloc_storm.c"
    command = [compiler, "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", str(made), str(source)]
    subprocess.run(command, check=True)
    return made


def _run_all(name: str, library: Path | None, settings: Settings) -> dict[str, list[Run | None]]:
    folder, rounds = settings.folder, settings.rounds
    scale = settings.scale * PROGRAM_SCALES.get(name, 1.0)
    program = [str(PROGRAMS / f"{name}.py"), str(scale)]
    program += [str(library)] if name == MALLOC else []
    record = [*tool("tlmem"), "record", "-q", "-f", "-o", str(folder / "own.tlm")]
    memray = [*tool("memray"), "run", "-q", "-f", "-o", str(folder / "memray.bin")]
    commands = {
        PLAIN: [sys.executable, *program],
        RECORD: [*record, *program],
        HEAP: [*record, "--heap", *program],
        MEMRAY: [*memray, *program],
        OBJECTS: [*memray, "--trace-python-allocators", *program],
        SCALENE: [*tool("scalene"), "run", "-o", str(folder / "scalene.json"), *program],
        TRACE: [sys.executable, "-X", "tracemalloc=1", *program],
    }
    for case, package in PACKAGES.items():
        if not importlib.util.find_spec(package):
            settings.show(f"{package} is not installed; pip install 'tlmem[bench]' brings it")
            del commands[case]
    if SCALENE in commands and importlib.util.find_spec("torch"):
        settings.show("scalene 2.4.0 starts PyTorch's profiler too and takes all memory: left out")
        del commands[SCALENE]
    own = (PLAIN, RECORD, HEAP)
    turns = {case: rounds if case in own else max(1, rounds // 3) for case in commands}

    def runner(command: Sequence[str]) -> Callable[[], Run]:
        return lambda: run(command, folder)

    cases = {case: runner(command) for case, command in commands.items()}
    return interleave(cases, turns, lambda text: settings.show(f"{name}, {text}"))


def _ratio(name: str, done: dict[str, list[Run | None]], case: str, base: str) -> float:
    pairs = zip(done[case], done[base], strict=True)
    return statistics.median(_seconds(name, a) / _seconds(name, b) for a, b in pairs if a and b)


def _seconds(name: str, done: Run) -> float:
    if name != MALLOC:
        return done.cpu_s
    for line in reversed(done.output.splitlines()):
        try:
            return float(line)
        except ValueError:
            continue  # a tool says something at the end
    raise RuntimeError(f"the loop in C printed no time:\n{done.output}")
