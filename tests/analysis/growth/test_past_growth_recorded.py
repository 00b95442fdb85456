"""Programs that ran: what grew and was kept is told; loads, caches and tables are not."""

from pathlib import Path

import pytest
from support.programs import command, recorded

import tlmem
from tlmem.analysis import analyse

TRAINED = """
import time
import numpy as np

data = np.random.rand(64, 800)
weights = np.random.rand(800, 100)
seen, small = {}, []

def forward(x):
    return np.tanh(x @ weights)

for step in range(40):
    forward(data)
    time.sleep(0.002)
for step in range(200):
    x = data + 0.01
    hidden = forward(x)
    error = hidden - 1.0
    slope = 1.0 - hidden * hidden
    weights -= 1e-6 * (x.T @ (error * slope))
    seen[step] = np.full(10_000, float(step))
    small.append(np.zeros(50))
    time.sleep(0.003)
for step in range(500):
    forward(data).argmax(1)
    LEAK
    time.sleep(0.002)
"""
SERVED = """
import time
import numpy as np

class Service:
    def __init__(self):
        self.history = []

    def learn(self, size):
        request = np.random.rand(size)
        self.history.append(np.sort(request))
        return float((request * 2).mean())

    def answer(self, size):
        return float(np.sort(np.random.rand(size))[::2].sum())

service = Service()
for _ in range(60):
    service.answer(20_000)
    time.sleep(0.003)
for _ in range(200):
    service.learn(20_000)
    time.sleep(0.003)
for _ in range(300):
    service.answer(20_000)
    time.sleep(0.003)
"""
LOADED = """
import io, time
import numpy as np

def chunk(number):
    file = io.BytesIO(np.full(20_000, number).tobytes())
    raw = np.frombuffer(file.read(), np.int64).copy()
    time.sleep(0.002)
    part = raw.astype(np.float64)
    part = part - part.mean()
    return part * 2

data = [chunk(number) for number in range(100)]
weights = np.zeros(20_000)
for epoch in range(8):
    for part in data:
        weights = weights - (part * weights) * 0.1
        time.sleep(0.002)
"""
CACHED = """
import time
import numpy as np

base, cache = np.random.rand(20_000), {}

def feature(number):
    if number not in cache:
        cache[number] = np.sin(base * number)
    return cache[number]

weights = np.zeros(20_000)
for epoch in range(2):
    for number in range(200):
        found = feature(number)
        step = np.clip(found * float(weights @ found), -1, 1)
        weights = weights - step * 1e-3
        time.sleep(0.002)
"""
MODEL = """
import time
import numpy as np

def layer(size):
    return np.random.rand(size, size)

model = [layer(200) for _ in range(100)]
x = np.random.rand(8, 200)
for step in range(40):
    for weights in model[:20]:
        x = np.tanh(x @ weights)
    time.sleep(0.03)
"""
REPLAYED = """
import time
from collections import deque
import numpy as np

replay = deque(maxlen=150)
for step in range(400):
    state = np.random.rand(9_000)
    replay.append(state + 1)
    time.sleep(0.002)
for step in range(300):
    np.sort(np.random.rand(9_000))
    time.sleep(0.003)
"""


def judged(program: str, folder: Path) -> tuple[str, list[tuple[str, int, int]], str]:
    """Outcome, severity, count and bytes of what grew and was kept, sentence."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = recorded(["program.py"], folder, options=("-q", "-o", "x.tlm"))
    analysis = analyse(tlmem.read(str(folder / "x.tlm")))
    past = [found for found in analysis.findings if found.kind == "grew-and-kept"]

    assert (done.returncode, done.stderr) == (0, b"")
    told = [(found.severity, found.count, found.bytes) for found in past]
    return analysis.verdict.outcome, told, analysis.verdict.sentence


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (TRAINED.replace("LEAK", ""), [("warning", 200, 16_000_000)]),
        (SERVED, [("warning", 200, 32_000_000)]),
        (CACHED, [("info", 200, 32_000_000)]),
        (LOADED, []),
        (MODEL, []),
        (REPLAYED, []),
    ],
    ids=["trained", "served", "cached", "loaded", "model", "replayed"],
)
def test_what_was_kept_is_told(
    program: str, told: list[tuple[str, int, int]], tmp_path: Path
) -> None:
    outcome, found, sentence = judged(program, tmp_path)

    assert outcome == "stable", sentence
    assert [severity for severity, _, _ in found] == [severity for severity, _, _ in told]
    for (_, count, held), (_, whole, all_bytes) in zip(found, told, strict=True):
        # The last keys of a cache may come long after the others.
        assert 0.97 * whole <= count <= whole and 0.97 * all_bytes <= held <= all_bytes


def test_the_warning_does_not_fail_a_check(tmp_path: Path) -> None:
    _, found, _ = judged(SERVED, tmp_path)

    assert [severity for severity, _, _ in found] == ["warning"]
    assert command(["check", "x.tlm"], tmp_path).returncode == 0


def test_a_larger_past_growth_is_named_after_a_leak(tmp_path: Path) -> None:
    program = TRAINED.replace("LEAK", "small.append(np.zeros(50))")
    outcome, found, sentence = judged(program, tmp_path)

    assert (outcome, found) == ("leak", [("warning", 200, 16_000_000)])
    assert "Larger, though it grows no more: 16.0 MB in 200 arrays" in sentence
