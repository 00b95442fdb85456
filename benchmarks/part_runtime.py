"""Part ``runtime``: scopes, objects, pools and tensors, beside malloc, NumPy and PyTorch."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from benchmarks.measuring import PROGRAMS, Settings, run_for_json
from benchmarks.pages import Section, table

LEAST_ROUNDS = 5
SEEDS = {
    "scope": ("scope, enter and exit, empty", "about 600"),
    "register": ("register a tensor in a scope", "about 50"),
    "register, release": ("the same, and its release at the exit", ""),
    "acquire, release": ("acquire and release", ""),
    "pool hit": ("pool, hit", "about 20"),
    "pool put": ("pool, put", "about 30"),
    "pool hit, put": ("pool, hit and put of one object by turns", ""),
    "pool miss": ("pool, miss", "about 50"),
    "arena 64 B": ("object of 64 B in the arena, its scope's end included", ""),
    "frame": ("frame with one slot: enter, buffer, exit", ""),
    "object 64 B": ("object of 64 B, allocated and freed", ""),
}
BYTES = {
    "scope": ("scope, with room for 12 records", "about 200"),
    "object": ("object", ""),
    "record": ("record of an object in a scope", "about 16"),
    "pool key": ("key of a pool, with one item", "about 100"),
    "strand": ("context of a thread or task", ""),
}
PYTHON = {
    "empty 64 B": "`empty`, 64 B",
    "empty 4 kB": "`empty`, 4 kB",
    "empty 1 MB": "`empty`, 1 MB",
    "add 64": "`add`, 64 x 64 float32",
    "add 64 out": "the same with `out=`",
    "add 64 threads": "the same without it, while a second thread waits",
    "add 1000": "`add`, 1000 x 1000 float32",
    "add 1000 out": "the same with `out=`",
}
RECORDED_IN_PYTHON = {
    "scope, tlmem": "`with tlmem.scope()`, empty",
    "empty 64 B, tlmem": "`empty`, 64 B",
    "add 64, tlmem": "`add`, 64 x 64 float32",
}
WAYS = {
    "direct": "a scope a step, buffers `direct`",
    "bounded": "a scope a step, buffers `bounded` (the default)",
    "pool": "`TensorPool` and `out=`",
    "numpy": "NumPy, for comparison",
}
NO_TORCH = (
    "PyTorch was not installed, so its column is missing; `pip install torch` in the same "
    "environment brings it in."
)


def measure(settings: Settings) -> Section:
    """Two processes; in each, everything takes turns."""
    rounds = max(LEAST_ROUNDS, settings.rounds) if settings.scale >= 1 else settings.rounds
    settings.show("runtime.py")
    found = _child("runtime.py", settings, str(rounds), str(settings.scale), str(settings.folder))
    settings.show("training.py")
    training = _child("training.py", settings, str(rounds), str(settings.scale))
    medians = {name: statistics.median(turns) for name, turns in found["rounds"].items()}
    section = Section("runtime")
    section.values = {f"runtime, {name}": value for name, value in medians.items()}
    section.values |= {f"runtime bytes, {name}": size for name, size in found["bytes"].items()}
    section.blocks = [
        f"In C, medians of {rounds} rounds; *seed* is what the papers tlmem grew out of say of "
        "the same. The last columns are what recording adds to it.",
        _core(medians, found["recorded"]),
        _memory(found["rounds"], medians),
        _bookkeeping(found["bytes"]),
        _threads(medians),
        "From Python; what is made dies at once, outside any scope."
        + ("" if found["torch"] else f" {NO_TORCH}"),
        _python(medians, found),
        "A training loop: an MLP of 784 inputs, one step, tensors of every operation included.",
        _training(training, section.values),
    ]
    return section


def _child(program: str, settings: Settings, *words: str) -> Any:
    return run_for_json([sys.executable, str(PROGRAMS / program), *words], settings.folder)


def _ns(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _ratio(rounds: list[float], baseline: list[float]) -> str:
    """The median of the rounds' ratios."""
    found = statistics.median(a / b for a, b in zip(rounds, baseline, strict=True))
    return f"{found:.2f}x"


def _event(recorded: dict[str, float] | None) -> list[str]:
    return [f"{recorded['events']:.0f}", _ns(recorded["ns"])] if recorded else ["", ""]


def _core(medians: dict[str, float], recorded: dict[str, dict[str, float]]) -> str:
    rows = [
        [text, _ns(medians[name]), seed, *_event(recorded.get(name))]
        for name, (text, seed) in SEEDS.items()
    ]
    return table(["operation", "ns", "seed", "events", "ns per event"], rows)


def _memory(rounds: dict[str, list[float]], medians: dict[str, float]) -> str:
    rows = []
    for size in ("64 B", "4 kB", "1 MB"):
        for words, first in (("", ""), (", touched", ", a store into each page")):
            ours, theirs = f"object{words} {size}", f"malloc{words} {size}"
            compared = _ratio(rounds[ours], rounds[theirs])
            rows.append([f"{size}{first}", _ns(medians[ours]), _ns(medians[theirs]), compared])
    ours, theirs = "arena 64 B", "malloc 64 B"
    compared = _ratio(rounds[ours], rounds[theirs])
    rows.append(["64 B in the arena", _ns(medians[ours]), _ns(medians[theirs]), compared])
    return table(["allocate and free", "object, ns", "malloc, ns", "ratio"], rows)


def _bookkeeping(sizes: dict[str, int]) -> str:
    rows = [[text, str(sizes[name]), seed] for name, (text, seed) in BYTES.items()]
    return table(["bookkeeping", "bytes", "seed"], rows)


def _threads(medians: dict[str, float]) -> str:
    named = [name for name in medians if name.startswith("pool, threads ")]
    rows = [[name.rpartition(" ")[2], _ns(medians[name])] for name in named]
    return table(["threads at one pool and one key", "ns per hit and put of any of them"], rows)


def _python(medians: dict[str, float], found: dict[str, Any]) -> str:
    libraries = ["numpy", *(["torch"] if found["torch"] else [])]
    rounds, recorded = found["rounds"], found["recorded"]
    rows = [
        [
            "`with tlmem.scope()`, empty",
            _ns(medians["scope, tlmem"]),
            *["" for _ in range(2 * len(libraries))],
            *_event(recorded["scope, tlmem"]),
        ]
    ]
    for name, text in PYTHON.items():
        ours = f"{name}, tlmem"
        row = [text, _ns(medians[ours])]
        for library in libraries:
            theirs = f"{name}, {library}"
            row += [_ns(medians[theirs]), _ratio(rounds[ours], rounds[theirs])]
        rows.append([*row, *_event(recorded.get(ours))])
    titles = {"numpy": "NumPy", "torch": f"PyTorch {found['torch']}"}
    head = ["from Python", "tlmem, ns"]
    for library in libraries:
        head += [f"{titles[library]}, ns", "ratio"]
    return table([*head, "events", "ns per event"], rows)


def _training(training: dict[str, Any], values: dict[str, float]) -> str:
    rows = []
    for size, done in training.items():
        seconds = done["seconds"]
        for way, text in WAYS.items():
            milliseconds = statistics.median(seconds[way]) * 1e3
            compared = _ratio(seconds[way], seconds["direct"])
            rows.append([f"{size}: {text}", f"{milliseconds:.2f}", compared])
        saved = [1 - a / b for a, b in zip(seconds["pool"], seconds["direct"], strict=True)]
        values[f"runtime, pool saves, {size}"] = 100 * statistics.median(saved)
    return table(["training loop", "ms a step", "of `direct`"], rows)
