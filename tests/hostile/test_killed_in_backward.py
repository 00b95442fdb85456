"""Training that is killed from outside at a moment of its own has lost nothing of what it did.

Each child says in shared memory how many steps it has done; each step makes a block of a size of
its own. ``TLMEM_HOSTILE=long`` kills 100 children.
"""

import json
import os
import signal
from pathlib import Path

import pytest
from support import programs

import tlmem

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

KILLS = 100 if os.environ.get("TLMEM_HOSTILE") == "long" else 8
FIRST_SIZE = 100_003
PROGRAM = f"""
import json, mmap, os, random, struct, time
import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1)
shared = mmap.mmap(-1, 4096)
chance = random.Random(5)

def work():
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(net.parameters())
    x, y, done = torch.randn(32, 64), torch.randint(0, 10, (32,)), 0
    while True:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        shared[8:16] = struct.pack("q", 1)
        loss.backward()
        shared[8:16] = struct.pack("q", 0)
        optimizer.step()
        mark = torch.empty({FIRST_SIZE} + done, dtype=torch.uint8)
        done += 1
        shared[0:8] = struct.pack("q", done)

told = []
for _ in range({KILLS}):
    shared[0:16] = bytes(16)
    child = os.fork()
    if child == 0:
        work()
    while struct.unpack("q", shared[0:8])[0] < 3:
        time.sleep(0.001)
    time.sleep(0.3 * chance.random())
    os.kill(child, {int(signal.SIGKILL)})
    os.waitpid(child, 0)
    told.append([child, *struct.unpack("2q", shared[0:16])])
print(json.dumps(told))
"""


def test_no_event_is_lost_when_a_child_is_killed_at_any_moment(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = programs.recorded(["program.py"], tmp_path, options=("-q", "-o", "x.tlm"))
    told = json.loads(done.stdout)

    assert len(told) == KILLS
    for child, steps, _ in told:
        (file,) = tmp_path.glob(f"x.{child}*.tlm")
        found = tlmem.read(file)
        seen = set(found.objects["size_bytes"].tolist())
        assert found.lost_events == found.missing_events == 0
        assert {FIRST_SIZE + step for step in range(steps)} <= seen
    if KILLS >= 100:
        assert any(in_backward for _, _, in_backward in told)
