"""Part ``heap``: what sampling native memory and Python's objects costs, beside others."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from benchmarks.measuring import PROGRAMS, Settings, tool
from benchmarks.pages import Section, table
from benchmarks.turns import Way, python, ratio, take_turns

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
AGAIN = "tlmem record -q, once more"
MEMRAY, OBJECTS = "memray run", "memray run --trace-python-allocators"
SCALENE, TRACE = "scalene run", "tracemalloc, 1 frame"
PACKAGES = {MEMRAY: "memray", OBJECTS: "memray", SCALENE: "scalene"}


def measure(settings: Settings) -> Section:
    """CPU time of each loop under each tool, of plain Python's in the turns beside it."""
    section = Section("heap")
    ways, library = _ways(settings), _library(settings)
    names = [name for name in TITLES if name != MALLOC or library]
    cells: dict[str, list[str]] = {way: [] for way in ways if way not in (PLAIN, AGAIN)}
    beside: dict[str, list[str]] = {HEAP: [], AGAIN: []}
    for name in names:
        words = [str(library)] if name == MALLOC else []
        done = take_turns(name, words, [name], ways, settings)[name]
        for way, row in cells.items():
            row.append(str(ratio(done[way], done[PLAIN])))
        for way, row in beside.items():
            row.append(str(ratio(done[way], done[RECORD])))
        section.values[f"heap, {name}"] = ratio(done[HEAP], done[RECORD]).median
    rows = [[way, *row] for way, row in cells.items()]
    rows += [[f"`{way}` of `{RECORD}`", *row] for way, row in beside.items()]
    section.blocks += [
        "CPU time of a process, its service thread included, of plain Python's: median of the "
        "rounds' ratios, the least and the most. In a round processes take turns of a tenth of a "
        "second. The last two rows are of the recording without samples; *once more* is a second "
        "such process: what differs from 1 there is the machine.",
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


def _ways(settings: Settings) -> dict[str, Way]:
    folder = settings.folder

    def record(name: str, *options: str) -> Way:
        made = str(folder / f"{name}.tlm")
        return Way([*tool("tlmem"), "record", "-q", "-f", "-o", made, *options])

    def memray(name: str, *options: str) -> Way:
        made = str(folder / f"{name}.bin")
        return Way([*tool("memray"), "run", "-q", "-f", "-o", made, *options], share=0.2)

    scalene = [*tool("scalene"), "run", "-o", str(folder / "scalene.json")]
    ways = {
        PLAIN: Way(python()),
        RECORD: record("own"),
        HEAP: record("heap", "--heap"),
        AGAIN: record("again"),
        MEMRAY: memray("memray"),
        OBJECTS: memray("objects", "--trace-python-allocators"),
        SCALENE: Way(scalene, share=0.2),
        TRACE: Way(python("-X", "tracemalloc=1"), share=0.2),
    }
    for way, package in PACKAGES.items():
        if not importlib.util.find_spec(package):
            settings.show(f"{package} is not installed; pip install 'tlmem[bench]' brings it")
            del ways[way]
    if SCALENE in ways and importlib.util.find_spec("torch"):
        settings.show("scalene 2.4.0 starts PyTorch's profiler too and takes all memory: left out")
        del ways[SCALENE]
    return ways
