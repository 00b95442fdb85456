"""Part ``compiled``: compiled functions beside the same functions as they were written."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from benchmarks.measuring import PROGRAMS, Settings, run_for_json
from benchmarks.pages import Section, table

NAMES = {
    "queens": "N-Queens, an epoch",
    "small": "forward pass 16-32-4, batch 8",
    "large": "forward pass 784-512-64, batch 256",
}
WAYS = {"eager": "as written", "compiled": "compiled", "out": "compiled, with out="}


def measure(settings: Settings) -> Section:
    """One process; the ways by turns."""
    settings.show("compiled.py")
    words = [str(max(3, settings.rounds)), str(settings.scale)]
    found = run_for_json([sys.executable, str(PROGRAMS / "compiled.py"), *words], settings.folder)
    section = Section("compiled")
    section.blocks = [
        "CPU time of one thread, medians of the rounds, and how many objects one turn makes; the "
        "ratio is the median of the rounds' ratios.",
        table(["", "way", "time", "of the time as written", "objects"], _rows(found, section)),
    ]
    return section


def _rows(found: dict[str, Any], section: Section) -> list[list[str]]:
    rows = []
    for name, text in NAMES.items():
        ways = found["seconds"][name]
        for way, rounds in ways.items():
            ratio = statistics.median(a / b for a, b in zip(rounds, ways["eager"], strict=True))
            made = found["objects"][name][way]
            if way != "eager":
                section.values[f"compiled, {name}, {way}"] = ratio
            time_us = statistics.median(rounds) * 1e6
            rows.append([text, WAYS[way], f"{time_us:.4g} us", f"{ratio:.2f}x", f"{made:.4g}"])
    return rows
