"""Part ``events``: nanoseconds an event costs the program, and what follows behind its back."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.measuring import PROGRAMS, Settings, run_for_json
from benchmarks.pages import Section, table
from benchmarks.targets import number

DEPTHS = (0, 1, 5, 20, 50)
MANNERS = {
    "warm": "C loop, same stack, warm pages",
    "fresh": "C loop, same stack, first touch of fresh pages",
    "sustained": "C loop, same stack, without a pause: compaction falls behind, the loop helps",
    "line": "NumPy, `np.empty` and `del` on two lines: the line changed",
    "frame": "NumPy, `np.empty` in a function: a frame came or went",
}


def measure(settings: Settings) -> Section:
    """Runs each child once; every number is a median or a mean of many events already."""
    events = _child("events.py", settings)
    after = _child("compaction.py", settings)
    section = Section("events")
    rows = [
        [text, *(_ns(events.get(f"{manner} {depth}")) for depth in DEPTHS)]
        for manner, text in MANNERS.items()
    ]
    head = ["ns per event", "no stack", *(f"{d} frame{'s'[: d > 1]}" for d in DEPTHS[1:])]
    section.blocks += [
        f"A probe that is switched off costs {number(events['off'], 'ns')}. An event that is "
        "recorded costs the thread that makes it:",
        table(head, rows),
        "After that, in the service thread (CPU time per event) and at the end:",
        _after(after),
    ]
    section.values = {**events}
    for name in ("storm", "variety"):
        done = after[name]
        section.values[f"compaction, {name}"] = done["compact_ns"] / done["compacted"]
    section.values["sealing"] = 100 * max(d["seal_ns"] / d["run_ns"] for d in after.values())
    limited = after["variety, 8 MiB"]
    if limited["folded"]:
        section.values["folding"] = limited["fold_ns"] / limited["folded"]
    section.values["bytes, variety"] = after["variety"]["file_bytes"] / after["variety"]["events"]
    return section


def _child(program: str, settings: Settings) -> Any:
    settings.show(program)
    words = [sys.executable, str(PROGRAMS / program), str(settings.scale), str(settings.folder)]
    return run_for_json(words, settings.folder)


def _ns(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _after(after: dict[str, dict[str, float]]) -> str:
    rows = []
    for name, done in after.items():
        folded = done["fold_ns"] / done["folded"] if done["folded"] else None
        rows.append(
            [
                name,
                f"{done['events'] / 1e6:.1f} M",
                f"{done['compact_ns'] / done['compacted']:.0f}",
                _ns(folded),
                f"{done['folded'] / done['events']:.0%}",
                f"{done['seal_ns'] / 1e6:.1f} ms of {done['run_ns'] / 1e6:.0f}",
                f"{done['own_bytes'] / 1e6:.1f} MB",
            ]
        )
    head = ["program", "events", "ns to compact", "ns to fold", "folded", "sealing", "own memory"]
    return table(head, rows)
