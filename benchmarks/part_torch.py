"""Part ``torch``: training steps of PyTorch, plain and under each tool by turns."""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from collections.abc import Callable

from benchmarks.measuring import PROGRAMS, Run, Settings, interleave, run, tool
from benchmarks.pages import Section, table
from benchmarks.targets import number

LOOPS = {
    "tiny": "a tiny step (MLP 32-64-10, batch 16, SGD)",
    "add": "`a + b` of ten elements",
    "gpt": "a step of GPT (4 blocks of 128, 8 x 64 tokens, AdamW)",
    "resnet": "a step of a small ResNet (16 images of 32 x 32, SGD)",
}
PLAIN, RECORD, MEMRAY = "python", "tlmem record -q", "memray run"
PROFILER, MEMTRACKER = "torch.profiler, memory and stacks", "MemTracker"
VALUES = {RECORD: "torch", PROFILER: "profiler", MEMTRACKER: "memtracker", MEMRAY: "memray torch"}


def measure(settings: Settings) -> Section:
    """Each loop's CPU time in the process, of plain PyTorch's in the same round."""
    section = Section("torch")
    if not importlib.util.find_spec("torch"):
        section.blocks.append("PyTorch is not installed: pip install 'tlmem[torch]' brings it.")
        return section
    done = _run_all(settings)
    rows = []
    for case, runs in done.items():
        ratios = {name: _ratio(runs, done[PLAIN], name) for name in LOOPS}
        if case in VALUES:
            section.values |= {f"{VALUES[case]}, {name}": ratios[name] for name in LOOPS}
        rows.append([case, *(number(ratios[name], "x") for name in LOOPS)])
    section.blocks += [
        "CPU time of a loop inside the process, of plain PyTorch's: medians of the rounds' ratios. "
        "One thread. MemTracker, of `torch.distributed._tools`, gives the same table of roles; it "
        "and the profiler run a tenth of the steps.",
        table(["", *LOOPS.values()], rows),
    ]
    return section


def _run_all(settings: Settings) -> dict[str, list[Run | None]]:
    folder, rounds = settings.folder, settings.rounds
    program = [str(PROGRAMS / "torch_steps.py"), str(settings.scale)]
    commands = {
        PLAIN: [sys.executable, *program],
        RECORD: [*tool("tlmem"), "record", "-q", "-f", "-o", str(folder / "own.tlm"), *program],
        MEMRAY: [*tool("memray"), "run", "-q", "-f", "-o", str(folder / "memray.bin"), *program],
        PROFILER: [sys.executable, *program, "profiler"],
        MEMTRACKER: [sys.executable, *program, "memtracker"],
    }
    if not importlib.util.find_spec("memray"):
        settings.show("memray is not installed; pip install 'tlmem[bench]' brings it")
        del commands[MEMRAY]
    turns = {case: rounds if case in (PLAIN, RECORD) else max(1, rounds // 3) for case in commands}

    def runner(command: list[str]) -> Callable[[], Run]:
        return lambda: run(command, folder)

    cases = {case: runner(command) for case, command in commands.items()}
    return interleave(cases, turns, lambda text: settings.show(f"torch, {text}"))


def _ratio(runs: list[Run | None], plain: list[Run | None], name: str) -> float:
    pairs = [(_loop(a, name), _loop(b, name)) for a, b in zip(runs, plain, strict=True) if a and b]
    return statistics.median(own / other for own, other in pairs)


def _loop(done: Run, name: str) -> float:
    return float(json.loads(done.output.splitlines()[-1])[name])
