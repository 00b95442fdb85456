"""Part ``screens``: how soon ``tlmem tui`` shows something, and how soon it answers keys.

It runs in a pseudo-terminal, as people run it. A key counts as answered when the text that it leads
to has been written to the terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import key_costs
from benchmarks.measuring import PROGRAMS, Settings, Spread, run, tool
from benchmarks.pages import Section, table
from benchmarks.pseudo_terminal import COLUMNS, ROWS, Screen

PAGES = ("Overview", "Timeline", "Findings", "Sites", "Scopes", "Pools", "Tape", "Diff")
WHILE_READING = [(str(n), rf"\[{n} {name}\]") for n, name in enumerate(PAGES, 1)]
AFTERWARDS = [
    *WHILE_READING,
    ("2", r"\[2 Timeline\]"),
    ("+", r"s to \d"),
    (".", r"s to \d"),
    ("-", r"all \d"),
    ("o", r"all lines"),
    ("s", r"largest first"),
    ("+", r"s to \d"),
    ("-", r"all \d"),
    ("\x7f", r"lines, most bytes first"),
    ("4", r"\[4 Sites\]"),
    ("v", r"\[<module>"),
    ("b", r"bytes allocated"),
    ("r", r"callers below"),
    ("3", r"\[3 Findings\]"),
    ("s", r"sorted by place"),
    ("1", r"\[1 Overview\]"),
]


def measure(settings: Settings) -> Section:
    """Records ten million events once, then looks at them."""
    folder = settings.folder
    path = folder / "ten_million.tlm"
    program = [str(PROGRAMS / "ten_million.py"), str(settings.scale)]
    settings.show("recording ten million events")
    run([*tool("tlmem"), "record", "-q", "-f", "-o", str(path), *program], folder)
    times = max(1, settings.rounds // 2)
    firsts, reads, early, late = [], [], [], []
    for _ in range(times):
        settings.show("browsing them")
        seen = look(path)
        firsts.append(seen["first"])
        reads.append(seen["analysed"])
        early += seen["while reading"]
        late += seen["afterwards"]
    settings.show("pressing every key")
    visits, pressed = costs_of_keys(path)
    path.unlink()
    section = Section("screens")
    rows = [
        ["first screen, start of Python and imports included", _milliseconds(firsts)],
        ["everything analysed", _milliseconds(reads)],
        [f"answer to a key while events are read ({len(early)} keys)", _milliseconds(early)],
        [f"answer to a key afterwards ({len(late)} keys)", _milliseconds(late)],
    ]
    section.blocks = [
        f"`tlmem tui` on ten million events in a terminal of {COLUMNS} x {ROWS}, {times} times.",
        table(["what", "milliseconds: median (least to most)"], rows),
        *key_costs.tables(visits, pressed),
    ]
    if settings.scale >= 1:
        section.values = {
            "screens, first": Spread.of(firsts).median * 1e3,
            "screens, key while reading": Spread.of(early).most * 1e3,
            "screens, key": Spread.of(late).most * 1e3,
            "screens, every key": max(cost.answer_ms for cost in [*visits, *pressed]),
            "screens, key CPU": max(cost.interface_ms for cost in pressed),
        }
    return section


def look(path: Path) -> dict[str, float | list[float]]:
    """Opens a recording, presses keys while it is read and afterwards, and quits."""
    screen = Screen.start([*_command(), "tui", str(path)])
    found: dict[str, float | list[float]] = {"first": screen.until(r"ten_million\.py")}
    for key, pattern in WHILE_READING:
        screen.press(key, pattern)
    found["while reading"], screen.answers_s = screen.answers_s, []
    screen.press("1", r"\[1 Overview\]")
    began = time.perf_counter()
    screen.written = ""
    screen.until(r"Findings: \d+")
    found["analysed"] = time.perf_counter() - began
    # The lanes and the tree are built when they are first looked at.
    screen.press("2", r"\d+ lines, most bytes first")
    screen.press("4", r"bytes alive")
    screen.answers_s = []
    for key, pattern in AFTERWARDS:
        screen.press(key, pattern)
    found["afterwards"] = screen.answers_s
    if screen.end() != 0:
        raise RuntimeError("q did not end tlmem tui with exit code 0")
    return found


def costs_of_keys(path: Path) -> tuple[list[key_costs.Cost], list[key_costs.Cost]]:
    """Every key on every screen of an analysed recording."""
    screen = Screen.start([*_command(), "tui", str(path)])
    screen.until(r"Findings: \d+")
    found = key_costs.costs(screen)
    if screen.end() != 0:
        raise RuntimeError("q did not end tlmem tui with exit code 0")
    return found


def _command() -> list[str]:
    command = tool("tlmem")
    return command if command[0] != "tlmem" else [sys.executable, "-m", "tlmem"]


def _milliseconds(values: Sequence[float]) -> str:
    spread = Spread.of([value * 1e3 for value in values])
    return f"{spread.median:.0f} ({spread.least:.0f} to {spread.most:.0f})"
