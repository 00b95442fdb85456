"""Snapshots of who holds what, in a process with PyTorch and 300,000 objects that Python's garbage
collector follows: most are PyTorch's own, once an optimizer has run; the rest are records.

``holders.py SNAPSHOTS SECONDS SCALE`` prints a JSON object as its last line: CPU ms of each
snapshot inside this thread, those that are asked for and those that the recorder takes by itself
while the program allocates for some seconds; objects that the collector follows, objects that a
snapshot met.
"""

import gc
import json
import sys
import time
from typing import Any

import torch
from torch import nn

from tlmem._native import ffi, lib

TRACKED, KEPT_EACH = 300_000, 40


class Record:
    """One record of a data set, with what belongs to it."""

    def __init__(self, number: int) -> None:
        self.number, self.name = number, f"record {number}"
        self.values: list[Any] = [number, number / 2, self.name]
        self.tags: dict[str, Any] = {"seen": [], "next": number + 1}
        self.place: tuple[Any, ...] = (number, self.values)
        self.data = torch.zeros(4) if number % KEPT_EACH == 0 else None


def fill(count: int) -> tuple[nn.Module, torch.optim.Optimizer, list[Record]]:
    """A model with its optimizer, and records until the collector follows that many objects."""
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(24)))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 16)).sum().backward()
    optimizer.step()
    records: list[Record] = []
    while len(gc.get_objects()) < count:
        records += [Record(len(records) + i) for i in range(1_000)]
    return model, optimizer, records


def grow(seconds: float) -> list[float]:
    """Keeps a tensor each millisecond; the CPU ms of each snapshot that the recorder takes.

    If it takes none in these seconds, it may take its first in the next minute.
    """
    kept: list[torch.Tensor] = []
    statistics = ffi.new("tlm_holders_statistics *")
    lib.tlm_holders_stats(statistics)
    taken: list[float] = []
    before, until = statistics.snapshots, time.perf_counter() + seconds
    while (left := until - time.perf_counter()) > 0 or (not taken and left > -60):
        kept.append(torch.zeros(5_000))
        time.sleep(0.001)
        lib.tlm_holders_stats(statistics)
        if statistics.snapshots != before:
            taken.append(statistics.last_ns / 1e6)
            before = statistics.snapshots
    return taken


def main(snapshots: int, seconds: float, scale: float) -> dict[str, Any]:
    """Takes them one after the other; the recorder counts what each took."""
    kept = fill(int(TRACKED * scale))
    gc.collect()
    found: dict[str, Any] = {"tracked": len(gc.get_objects()), "kept": len(kept[2]), "asked": []}
    statistics = ffi.new("tlm_holders_statistics *")
    for _ in range(snapshots):
        lib.tlm_holders_now(0, 0)
        lib.tlm_holders_stats(statistics)
        found["asked"].append(statistics.last_ns / 1e6)
    found["met"] = statistics.last_objects
    found["own"] = grow(seconds)
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))))
