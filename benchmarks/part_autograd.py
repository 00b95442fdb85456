"""Part ``autograd``: training steps beside PyTorch: time, and bytes that are saved and needed."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from benchmarks.measuring import PROGRAMS, Settings, run_for_json
from benchmarks.pages import Section, table
from benchmarks.part_runtime import LEAST_ROUNDS, NO_TORCH

STEPS = {
    "mlp 8": "MLP 16-32-10, batch 8",
    "mlp 32": "MLP 16-32-10, batch 32",
    "mlp 32, gradients": "the same without the optimiser",
    "queens": "N-Queens, an epoch",
    "transformer": "transformer block, 4 x 32 x 64, 4 heads",
    "large transformer": "transformer block, 4 x 64 x 384, 6 heads",
    "large mlp": "MLP 1024-1024-1024-1024, batch 512",
}
MEMORY = ["mlp 32", "queens", "transformer", "large transformer", "large mlp"]
SIZES = {
    "saved": "saved",
    "saved alone": "saved, without weights and batch",
    "peak": "most at once in a step",
}


def measure(settings: Settings) -> Section:
    """One process for times; one for memory, as what that takes may not slow down a step."""
    rounds = max(LEAST_ROUNDS, settings.rounds) if settings.scale >= 1 else settings.rounds
    settings.show("autograd.py")
    words = [str(rounds), str(settings.scale)]
    found = run_for_json([sys.executable, str(PROGRAMS / "autograd.py"), *words], settings.folder)
    settings.show("autograd_memory.py")
    models = MEMORY if settings.scale >= 1 else MEMORY[:3]
    program = str(PROGRAMS / "autograd_memory.py")
    memory = run_for_json([sys.executable, program, *models], settings.folder)
    section = Section("autograd")
    missing = "" if found["torch"] else f" {NO_TORCH}"
    section.blocks = [
        f"Medians of {rounds} rounds in one process, least to most in brackets; the ratio is the "
        f"median of the rounds' ratios.{missing}",
        _steps(found, section.values),
        "Bytes of one step, after two others.",
        _memory(memory, section.values),
    ]
    return section


def _time(rounds: list[float]) -> str:
    unit, factor = ("ms", 1e3) if statistics.median(rounds) >= 1e-3 else ("us", 1e6)
    middle, least, most = (f"{factor * f(rounds):.4g}" for f in (statistics.median, min, max))
    return f"{middle} {unit} ({least} to {most})"


def _ratio(rounds: list[float], baseline: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(rounds, baseline, strict=True))


def _steps(found: dict[str, Any], values: dict[str, float]) -> str:
    rows = []
    for name, text in STEPS.items():
        ways = found["seconds"][name]
        row = [text, _time(ways["tlmem"])]
        values[f"autograd us, {name}"] = statistics.median(ways["tlmem"]) * 1e6
        if "torch" in ways:
            compared = _ratio(ways["tlmem"], ways["torch"])
            values[f"autograd, {name}"] = compared
            row += [_time(ways["torch"]), f"{compared:.2f}x"]
        rows.append(row)
    ways = found["seconds"]["large mlp"]
    bound = _ratio(ways["tlmem"], ways["products"])
    values["autograd, products"] = bound
    last = [
        f"its matrix products alone, by NumPy: {_time(ways['products'])}",
        f"{bound:.2f}x of it",
    ]
    head = ["training step", "tlmem"]
    if found["torch"]:
        theirs = _ratio(ways["torch"], ways["products"])
        last += ["", f"PyTorch {theirs:.2f}x of it"]
        head += [f"PyTorch {found['torch']}", "ratio"]
    return table(head, [*rows, last])


def _memory(memory: dict[str, Any], values: dict[str, float]) -> str:
    rows = []
    for name, by_library in memory.items():
        for what, text in SIZES.items():
            row = [f"{STEPS[name]}: {text}", f"{by_library['tlmem'][what]:,}".replace(",", " ")]
            if "torch" in by_library:
                theirs = by_library["torch"][what]
                compared = by_library["tlmem"][what] / theirs if theirs else 0.0
                values[f"autograd {what}, {name}"] = compared
                row += [f"{theirs:,}".replace(",", " "), f"{compared:.2f}x"]
            rows.append(row)
    both = any("torch" in each for each in memory.values())
    return table(["bytes", "tlmem", *(["PyTorch", "ratio"] if both else [])], rows)
