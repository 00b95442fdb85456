"""The numbers of the autograd graph that large blocks have, beside those of PyTorch's nodes."""

import json
from pathlib import Path

import pytest
from recorder.test_stacks import record
from recorder.test_torch_modules import HEAD, MODEL

import tlmem
from tlmem.events import Kind

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")


def numbers_of(recording: tlmem.Recording) -> dict[int, list[list[int]]]:
    """By size: number and 1 for backward of every block that has them, in the order of events."""
    found: dict[int, list[list[int]]] = {}
    for _, events in recording.events.groupby("thread", sort=False):
        size, address = 0, -1
        columns = (events[name].tolist() for name in ("kind", "address", "object", "arg"))
        for kind, at, raw, arg in zip(*columns, strict=True):
            if kind == Kind.ALLOC:
                size, address = arg, at
            elif kind == Kind.AUTOGRAD:
                assert address == raw
                found.setdefault(size, []).append([arg >> 1, arg & 1])
    return found


NUMBERED = r"""
truth = {}

def double(n):
    x = torch.ones(n, dtype=torch.float32, requires_grad=True)
    y = x * 2
    return y, y.grad_fn._sequence_nr()

def passes(first, count):
    results = []
    for n in range(first, first + count):
        y, number = double(n)
        truth[4 * n] = [[number + 1, 0], [number, 1]]
        results.append(y)
    torch.stack([y.sum() for y in results]).sum().backward()

passes(10001, 20)

# In another thread, whose numbers are its own.
thread = threading.Thread(target=passes, args=(10101, 20)); thread.start(); thread.join()

# An exception leaves the pass; what comes after it is forward.
y, number = double(10201)
def fail(gradient):
    raise ValueError
y.register_hook(fail)
try:
    y.sum().backward()
except RuntimeError as error:
    raise SystemExit(error)
except ValueError:
    pass
truth[4 * 10201] = [[number + 1, 0]]
class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g):
        torch.empty(10202)
        raise ValueError
x = torch.ones(100, requires_grad=True)
y = Failing.apply(x)
truth[4 * 10202] = [[y.grad_fn._sequence_nr(), 1]]
try:
    y.sum().backward()
except ValueError:
    pass
passes(10301, 5)

# A pass within a pass: the outer node goes on after it.
class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g):
        torch.empty(10402)
        with torch.enable_grad():
            passes(10403, 1)
        torch.empty(10404)
        return g
y = Nested.apply(x)
outer = [y.grad_fn._sequence_nr(), 1]
truth[4 * 10402] = truth[4 * 10404] = [outer]
y.sum().backward()
truth[4 * 10403][:1] = [outer, outer]  # what a node's own code computes is backward's

# Where no gradient is wanted only the first block may have a number.
with torch.no_grad():
    for _ in range(50):
        z = torch.ones(10501) * 2
json.dump(truth, open("truth.json", "w"))
"""


def test_numbers_are_those_of_the_nodes(tmp_path: Path) -> None:
    recording = record(tmp_path, HEAD + NUMBERED)
    truth = json.loads((tmp_path / "truth.json").read_text())
    found = numbers_of(recording)

    for size, rows in truth.items():
        # ones() comes before the node: the first block of the number before.
        mine = [row for row in found[int(size)] if row in rows or row[1] == 1]
        assert mine == rows, size
    assert len(found.get(4 * 10501, [])) <= 1
    assert recording.problems == []


def test_backward_blocks_of_a_model_lead_to_a_module(tmp_path: Path) -> None:
    recording = record(tmp_path, HEAD + MODEL)
    names = recording._names.labels
    paths: dict[int, str] = {}
    backward, size, path = [], 0, ""
    events = recording.events
    for kind, arg in zip(events["kind"].tolist(), events["arg"].tolist(), strict=True):
        if kind == Kind.ALLOC:
            size, path = arg, ""
        elif kind == Kind.MODULE_PATH:
            path = names[arg]
        elif kind == Kind.AUTOGRAD and arg & 1:
            backward.append((size, arg >> 1))
        elif kind == Kind.AUTOGRAD:
            paths.setdefault(arg >> 1, path)
    mlp = [paths.get(number + 1) for size, number in backward if size == 4 * 64 * 256]
    assert len(backward) > 100
    # The gradients of the two matrices of each mlp, in each of three steps.
    assert sorted(path for path in mlp if path is not None) == sorted(
        f"GPT/blocks.{block}.mlp.{i}" for block in range(3) for i in (0, 2) for _ in range(3)
    )
    known = sum(size for size, number in backward if paths.get(number + 1))
    assert known > 0.8 * sum(size for size, _ in backward)
