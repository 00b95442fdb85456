"""Part ``programs``: whole programs, plain and under each tool by turns, and their file sizes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measuring import (
    PROGRAMS,
    Run,
    Settings,
    Spread,
    difference,
    interleave,
    ratio,
    run,
    run_for_json,
    spread,
    tool,
)
from benchmarks.pages import Section, table
from benchmarks.targets import number

TITLES = {
    "storm": "Allocation storm: two arrays of 2 kB per iteration of about 2 us, 10 frames deep",
    "mlp": "NumPy MLP, batch 64, 784-128-10",
    "pure_python": "Pure Python: calls, dictionaries, strings, no arrays",
    "pandas_pipeline": "pandas pipeline: filter, merge, group, sort, pivot 20 000 rows",
}
PLAIN, RECORD, MEMRAY = "python", "tlmem record -q", "memray run"
SMALL = "python, a fifth of the size"
TRACE_1, TRACE_25 = "tracemalloc, 1 frame, likewise", "tracemalloc, 25 frames, likewise"
SMALL_SHARE = 0.2
VALUES = {RECORD: "cpu", MEMRAY: "memray", TRACE_1: "tracemalloc 1", TRACE_25: "tracemalloc 25"}


def measure(settings: Settings) -> Section:
    """Programs, all or those that are asked for, under every tool that is installed."""
    section = Section("programs")
    sizes = []
    for name in settings.programs or TITLES:
        done = _run_all(name, settings)
        section.blocks += [f"### {TITLES[name]}", _table(done)]
        _keep_values(name, done, section)
        sizes.append(_size_row(name, settings.folder, section))
    section.blocks += [
        "### Bytes per event",
        "Of the sealed file, names and samples included. A record of memray is an allocation or a "
        "free, without the stack of the free; small arrays that NumPy hands out again are not "
        "among them.",
        table(
            ["program", "events", "tlmem file", "B per event", "memray records", "B per record"],
            sizes,
        ),
    ]
    return section


def _run_all(name: str, settings: Settings) -> dict[str, list[Run | None]]:
    """Plain and recorded ``rounds`` times, the others in a third of the rounds."""
    folder, rounds, show = settings.folder, settings.rounds, settings.show
    full = [str(PROGRAMS / f"{name}.py"), str(settings.scale)]
    small = [full[0], str(settings.scale * SMALL_SHARE)]
    python = sys.executable
    commands = {
        PLAIN: [python, *full],
        RECORD: [*tool("tlmem"), "record", "-q", "-f", "-o", str(folder / "own.tlm"), *full],
        MEMRAY: [*tool("memray"), "run", "-q", "-f", "-o", str(folder / "memray.bin"), *full],
        SMALL: [python, *small],
        TRACE_1: [python, "-X", "tracemalloc=1", *small],
        TRACE_25: [python, "-X", "tracemalloc=25", *small],
    }
    if not importlib.util.find_spec("memray"):
        show("memray is not installed; pip install 'tlmem[bench]' brings it")
        del commands[MEMRAY]
    turns = {case: rounds if case in (PLAIN, RECORD) else max(1, rounds // 3) for case in commands}

    def runner(command: Sequence[str]) -> Callable[[], Run]:
        return lambda: run(command, folder)

    cases = {case: runner(command) for case, command in commands.items()}
    return interleave(cases, turns, lambda text: show(f"{name}, {text}"))


def _baseline(done: dict[str, list[Run | None]], case: str) -> list[Run | None]:
    return done[SMALL if case in (SMALL, TRACE_1, TRACE_25) else PLAIN]


def _table(done: dict[str, list[Run | None]]) -> str:
    rows = []
    for case, runs in done.items():
        plain = _baseline(done, case)
        cpu, wall = spread(runs, "cpu_s"), spread(runs, "wall_s")
        rows.append(
            [
                case,
                str(cpu.count),
                _seconds(cpu),
                number(ratio(runs, plain, "cpu_s").median, "x"),
                _seconds(wall),
                number(ratio(runs, plain, "wall_s").median, "x"),
                f"{spread(runs, 'exit_s').median * 1e3:.0f} ms",
                f"{spread(runs, 'peak_bytes').median / 1e6:.0f} MB",
            ]
        )
    head = ["", "runs", "CPU s", "ratio", "wall s", "ratio", "last line to exit", "peak"]
    return table(head, rows)


def _seconds(value: Spread) -> str:
    if value.count == 1:
        return f"{value.median:.2f}"
    return f"{value.median:.2f} ({value.least:.2f} to {value.most:.2f})"


def _keep_values(name: str, done: dict[str, list[Run | None]], section: Section) -> None:
    plain, recorded = done[PLAIN], done[RECORD]
    for case, kind in VALUES.items():
        if case in done:
            against = _baseline(done, case)
            section.values[f"{kind}, {name}"] = ratio(done[case], against, "cpu_s").median
    section.values[f"wall, {name}"] = ratio(recorded, plain, "wall_s").median
    delay = difference(recorded, plain, "exit_s").median
    section.values[f"exit, {name}"] = 100 * delay / spread(plain, "wall_s").median


def _size_row(name: str, folder: Path, section: Section) -> list[str]:
    paths = [path for path in (folder / "own.tlm", folder / "memray.bin") if path.exists()]
    counts = run_for_json([sys.executable, PROGRAMS / "counting.py", *paths], folder)
    row = [name]
    for path, count in zip(paths, counts, strict=True):
        size = path.stat().st_size
        if path.suffix == ".tlm":
            section.values[f"bytes, {name}"] = size / count
            row += [f"{count:,}".replace(",", " "), f"{size / 1e6:.2f} MB", f"{size / count:.2f}"]
        else:
            row += [f"{count:,}".replace(",", " "), f"{size / count:.2f}"]
    return row + [""] * (6 - len(row))
