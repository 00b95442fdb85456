"""Compares what tlmem records of an accelerator with what PyTorch says of it, and the overhead.

``python -m benchmarks.cuda_check`` needs a GPU and a PyTorch built for it. It trains a small model
three times: plain, under ``tlmem record``, and under ``tlmem record`` with PyTorch's own trace
(``torch.cuda.memory._record_memory_history``) and ``memory_allocated()`` after each step. It says

- whether events and trace agree in number, addresses, order and sizes,
- whether live and reserved bytes agree at every step,
- what recording costs (at most 1.02x is the target).

Exits 0 when all agree, 1 when something differs, 2 without an accelerator.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS, STEPS = 5, 200
MOST_RATIO = 1.02
INDEX_SHIFT = 56
TRACE = "TLMEM_CUDA_CHECK"


def train(steps: int, trace: Path | None) -> float:
    """Trains, and returns the seconds of its steps; with a path, writes what PyTorch says there."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    device = "cuda"
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    says: list[tuple[int, int]] = []
    if trace:
        import tlmem

        torch.cuda.memory._record_memory_history(max_entries=10_000_000)
        tlmem.mark("check", 0)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for step in range(steps):
        x = torch.randn(64 + step % 7, 512, device=device)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if trace:
            says.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
            tlmem.mark("step", step)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    if trace:
        entries = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        names = {"alloc": "alloc", "free_completed": "free"}
        rows = [(names[e["action"]], e["addr"]) for e in entries if e["action"] in names]
        trace.write_text(json.dumps({"says": says, "trace": rows}))
    return seconds


def compare(recording_path: Path, trace: Path) -> list[str]:
    """What differs between a recording and what PyTorch said in the same run, a sentence each."""
    import tlmem
    from tlmem.events import Device, Kind

    recording = tlmem.read(recording_path)
    truth = json.loads(trace.read_text())
    events: Any = recording.events
    marks: Any = recording.marks
    begin = marks.loc[marks["label"] == "check", "time_ns"].iloc[0]
    own = events[events["device"] == Device.TORCH_ACCELERATOR]
    blocks = own[own["kind"].isin([Kind.ALLOC, Kind.FREE]) & (own["time_ns"] >= begin)]
    seen = [
        ("alloc" if kind == Kind.ALLOC else "free", int(address) & ((1 << INDEX_SHIFT) - 1))
        for kind, address in zip(blocks["kind"], blocks["address"], strict=True)
    ]
    said = [(action, int(address)) for action, address in truth["trace"]]
    wrong = []
    if len(seen) != len(said):
        wrong.append(f"{len(seen)} events and {len(said)} entries of PyTorch's trace")
    first = next(
        (i for i, pair in enumerate(zip(seen, said, strict=False)) if pair[0] != pair[1]), -1
    )
    if first >= 0:
        wrong.append(f"event {first} is {seen[first]}, and PyTorch's trace has {said[first]}")
    sign = np.where(own["kind"] == Kind.ALLOC, 1, 0) - np.where(own["kind"] == Kind.FREE, 1, 0)
    sizes = _sizes(recording, own)
    live = np.cumsum(sign * sizes)
    held = np.where(own["kind"] == Kind.DEVICE_ALLOC, 1, 0)
    held = held - np.where(own["kind"] == Kind.DEVICE_FREE, 1, 0)
    reserved = np.cumsum(held * own["arg"].to_numpy(np.int64))
    times = own["time_ns"].to_numpy(np.int64)
    steps = marks.loc[marks["label"] == "step", "time_ns"].to_numpy(np.int64)
    for step, (at, told) in enumerate(
        zip(np.searchsorted(times, steps), truth["says"], strict=True)
    ):
        found = (int(live[at - 1]), int(reserved[at - 1]))
        if found != tuple(told):
            wrong.append(
                f"step {step}: {found} bytes live and reserved, PyTorch says {tuple(told)}"
            )
            break
    return wrong


def _sizes(recording: Any, own: Any) -> np.ndarray:
    """Bytes that each event adds or takes away: a free has those of the block's allocation."""
    from tlmem.events import Kind

    last: dict[int, int] = {}
    sizes = np.zeros(len(own), np.int64)
    rows = zip(own["kind"], own["address"], own["arg"], strict=True)
    for row, (kind, address, size) in enumerate(rows):
        if kind == Kind.ALLOC:
            last[address] = int(size)
        if kind in (Kind.ALLOC, Kind.FREE):
            sizes[row] = last.get(address, 0)
    return sizes


def run(words: list[str], trace: Path | None = None) -> float:
    """Seconds that the steps of one training took."""
    environment = {**os.environ, TRACE: str(trace or "")}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout.splitlines()[-1])


def main() -> int:
    """Runs everything and prints what was found."""
    if TRACE in os.environ:
        print(train(STEPS, Path(os.environ[TRACE]) if os.environ[TRACE] else None))
        return 0
    import torch

    if not torch.cuda.is_available():
        print("no accelerator: torch.cuda.is_available() is False", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="tlmem-cuda-") as folder:
        file, trace = Path(folder) / "check.tlm", Path(folder) / "trace.json"
        plain = [sys.executable, "-m", "benchmarks.cuda_check"]
        record = [sys.executable, "-m", "tlmem", "record", "-q", "-f", "-o", str(file)]
        recorded = [*record, "-m", "benchmarks.cuda_check"]
        ratios = []
        for _ in range(ROUNDS):
            before = run(plain)
            ratios.append(run(recorded) / before)
        run(recorded, trace)
        wrong = compare(file, trace)
    ratio = statistics.median(ratios)
    print(f"recording: {ratio:.3f}x of plain, at most {MOST_RATIO} is the target")
    print("\n".join(wrong) if wrong else "events, live and reserved bytes agree with PyTorch's own")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
