"""Part ``reading``: seconds and memory to open ten million events and find what there is.

Twice: arrays of NumPy from many lines, and tensors of the runtime with all that is said of who
holds them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.measuring import PROGRAMS, Run, Settings, Spread, run, run_for_json, spread, tool
from benchmarks.pages import Section, table

STEPS = {
    "open_s": "open the file",
    "tables_s": "build every table",
    "findings_s": "verdict and findings",
}
KINDS = {
    "NumPy": "ten_million.py",
    "the runtime": "ten_million_runtime.py",
}
COMMANDS = ("report", "balance", "diff")
"""``diff`` reads two recordings: ten million events twice."""


def measure(settings: Settings) -> Section:
    """Records ten million events of each kind once, then reads them in fresh processes."""
    times = max(1, settings.rounds // 2)
    found = {kind: _measure(settings, kind, times) for kind in KINDS}
    section = Section("reading")
    section.blocks = [
        f"In a fresh process each time, {times} times: seconds, and peak memory in GB.",
        table(["", *KINDS], _rows(found)),
    ]
    if settings.scale >= 1:
        section.values = _values(found)
    return section


def _measure(settings: Settings, kind: str, times: int) -> dict[str, Any]:
    """All that is measured of one recording."""
    folder = settings.folder
    path = folder / f"{Path(KINDS[kind]).stem}.tlm"
    program = [str(PROGRAMS / KINDS[kind]), str(settings.scale)]
    settings.show(f"recording ten million events of {kind}")
    run([*tool("tlmem"), "record", "-q", "-f", "-o", str(path), *program], folder)
    opened: list[dict[str, float]] = []
    commands: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    for _ in range(times):
        settings.show(f"reading those of {kind}")
        opened.append(run_for_json([sys.executable, PROGRAMS / "opening.py", path], folder))
        for name, done in commands.items():
            files = [str(path)] * (2 if name == "diff" else 1)
            out = ["-o", str(folder / "out.txt")]
            done.append(run([*tool("tlmem"), name, *files, *out], folder))
    bytes_ = path.stat().st_size
    path.unlink()
    return {"opened": opened, "commands": commands, "bytes": bytes_}


def _rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """One row for each thing that is measured, one column for each kind."""
    every = list(found.values())
    events = [one["opened"][0]["events"] for one in every]
    rows = [
        ["million events", *(f"{count / 1e6:.2f}" for count in events)],
        [
            "bytes an event",
            *(f"{one['bytes'] / count:.2f}" for one, count in zip(every, events, strict=True)),
        ],
    ]
    rows += [
        [f"{text}, s", *(_spread([o[step] for o in one["opened"]]) for one in every)]
        for step, text in STEPS.items()
    ]
    rows += [
        ["together, s", *(_spread(_together(one)) for one in every)],
        ["imports, not in the sum, s", *(_spread(_of(one, "imports_s")) for one in every)],
        ["peak memory, GB", *(_gigabytes(_of(one, "peak_bytes")) for one in every)],
    ]
    for name in COMMANDS:
        what = f"`tlmem {name}` as a whole" + (" (two files)" if name == "diff" else "")
        done = [one["commands"][name] for one in every]
        rows.append([f"{what}, s", *(_spread([each.wall_s for each in runs]) for runs in done)])
        peaks = [_gigabytes([each.peak_bytes for each in runs]) for runs in done]
        rows.append(["its peak memory, GB", *peaks])
    return rows


def _values(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The numbers that have a target; the slower kind counts."""
    return {
        "reading": max(Spread.of(_together(one)).median for one in found.values()),
        "reading peak": max(
            Spread.of(_of(one, "peak_bytes")).median / 1e6 for one in found.values()
        ),
        **{
            name: max(spread(one["commands"][name], "wall_s").median for one in found.values())
            for name in COMMANDS
        },
    }


def _together(one: dict[str, Any]) -> list[float]:
    """Seconds of all steps, of each time."""
    return [sum(opened[step] for step in STEPS) for opened in one["opened"]]


def _of(one: dict[str, Any], name: str) -> list[float]:
    return [opened[name] for opened in one["opened"]]


def _spread(values: list[float]) -> str:
    found = Spread.of(values)
    if found.median < 0.01:
        return f"{found.median:.4f}"
    return f"{found.median:.2f} ({found.least:.2f} to {found.most:.2f})"


def _gigabytes(values: list[float]) -> str:
    return f"{Spread.of(values).median / 1e9:.2f}"
