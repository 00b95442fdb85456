"""Snapshots of who holds what, in a process with PyTorch and 300,000 objects that Python's garbage
collector follows: most are PyTorch's own, once an optimizer has run; the rest are records.

``holders.py SNAPSHOTS SCALE`` prints a JSON object as its last line: CPU ms of each snapshot
inside this thread, objects that the collector follows, objects that a snapshot met.
"""

import gc
import json
import sys
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


def main(snapshots: int, scale: float) -> dict[str, Any]:
    """Takes them one after the other; the recorder counts what each took."""
    kept = fill(int(TRACKED * scale))
    gc.collect()
    found: dict[str, Any] = {"tracked": len(gc.get_objects()), "kept": len(kept[2]), "ms": []}
    statistics = ffi.new("tlm_holders_statistics *")
    for _ in range(snapshots):
        lib.tlm_holders_now(0, 0)
        lib.tlm_holders_stats(statistics)
        found["ms"].append(statistics.last_ns / 1e6)
    found["met"] = statistics.last_objects
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), float(sys.argv[2]))))
