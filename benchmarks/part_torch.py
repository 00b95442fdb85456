"""Part ``torch``: training steps of PyTorch, plain and under each tool by turns."""

from __future__ import annotations

import importlib.util

from benchmarks.measuring import Settings, tool
from benchmarks.pages import Section, table
from benchmarks.turns import Way, python, ratio, take_turns

LOOPS = {
    "tiny": "a tiny step (MLP 32-64-10, batch 16, SGD)",
    "add": "`a + b` of ten elements",
    "gpt": "a step of GPT (4 blocks of 128, 8 x 64 tokens, AdamW)",
    "resnet": "a step of a small ResNet (16 images of 32 x 32, SGD)",
    "resnet_kept": "the same, freed memory kept",
}
PLAIN, AGAIN, RECORD, MEMRAY = "python", "python, once more", "tlmem record -q", "memray run"
PROFILER, MEMTRACKER = "torch.profiler, memory and stacks", "MemTracker"
VALUES = {RECORD: "torch", PROFILER: "profiler", MEMTRACKER: "memtracker", MEMRAY: "memray torch"}


def measure(settings: Settings) -> Section:
    """CPU time of each loop, of plain PyTorch's in the turns beside it."""
    section = Section("torch")
    if not importlib.util.find_spec("torch"):
        section.blocks.append("PyTorch is not installed: pip install 'tlmem[torch]' brings it.")
        return section
    ways = _ways(settings)
    cells: dict[str, list[str]] = {way: [] for way in ways if way != PLAIN}
    for loop, done in take_turns("torch_steps", [], LOOPS, ways, settings).items():
        for way, row in cells.items():
            found = ratio(done[way], done[PLAIN])
            row.append(str(found))
            if way in VALUES:
                section.values[f"{VALUES[way]}, {loop}"] = found.median
    section.blocks += [
        "CPU time of a process, its service thread included, of plain PyTorch's: median of the "
        "rounds' ratios, the least and the most. In a round processes take turns of a tenth of a "
        "second, one thread each. *Once more* is a second process of plain PyTorch: what differs "
        "from 1 there is the machine. MemTracker, of `torch.distributed._tools`, gives the same "
        "table of roles; it and the profiler are switched on for a turn, which is not counted. "
        "*Freed memory kept*: `mallopt` tells glibc not to give back what a step frees.",
        table(["", *LOOPS.values()], [[way, *row] for way, row in cells.items()]),
    ]
    return section


def _ways(settings: Settings) -> dict[str, Way]:
    own, other = str(settings.folder / "own.tlm"), str(settings.folder / "memray.bin")
    ways = {
        PLAIN: Way(python()),
        RECORD: Way([*tool("tlmem"), "record", "-q", "-f", "-o", own]),
        AGAIN: Way(python()),
        MEMRAY: Way([*tool("memray"), "run", "-q", "-f", "-o", other], share=0.5),
        PROFILER: Way(python(), ["profiler"], share=0.2),
        MEMTRACKER: Way(python(), ["memtracker"], share=0.2),
    }
    if not importlib.util.find_spec("memray"):
        settings.show("memray is not installed; pip install 'tlmem[bench]' brings it")
        del ways[MEMRAY]
    return ways
