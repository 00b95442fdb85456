"""N-Queens and forward passes, compiled and not, in one process: CPU seconds and events as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tlmem.scenarios.programs.healthy import nqueens, nqueens_compiled

import tlmem
from tlmem.runtime import core


def forward(x, w1, b1, w2, b2):
    h = tlmem.relu(x @ w1 + b1)
    return h @ w2 + b2


def eager_queens(epochs: int) -> Any:
    """The functions as they were written."""
    written: Any = nqueens_compiled.solve.__wrapped__
    names = {**written.__globals__, "total_loss": nqueens.total_loss}
    return type(written)(written.__code__, names)(20, epochs)


def ways(scale: float) -> dict[str, tuple[int, dict[str, Callable[[], Any]]]]:
    """Name -> repetitions in one measurement, and the ways to do it."""
    epochs = max(20, int(1000 * scale))
    found: dict[str, tuple[int, dict[str, Callable[[], Any]]]] = {
        "queens": (
            epochs,
            {
                "eager": lambda: eager_queens(epochs),
                "compiled": lambda: nqueens_compiled.solve(20, epochs),
            },
        )
    }
    compiled: Any = tlmem.compile(forward)
    for name, (batch, inside, hidden, outside) in {
        "small": (8, 16, 32, 4),
        "large": (256, 784, 512, 64),
    }.items():
        shapes = (batch, inside), (inside, hidden), (hidden,), (hidden, outside), (outside,)
        given = [tlmem.randn(shape, seed=i) for i, shape in enumerate(shapes)]
        out = tlmem.empty((batch, outside))
        turns = max(5, int((2000 if name == "small" else 40) * scale))
        found[name] = (turns, {**of_forward(compiled, given, out, turns)})
    return found


def of_forward(compiled: Any, given: list[Any], out: Any, turns: int) -> dict[str, Any]:
    """The ways to call a forward pass so many times."""

    def eager() -> None:
        for _ in range(turns):
            forward(*given)

    def planned() -> None:
        for _ in range(turns):
            compiled(*given)

    def into() -> None:
        for _ in range(turns):
            compiled(*given, out=out)

    return {"eager": eager, "compiled": planned, "out": into}


def objects() -> int:
    """How many objects were ever made."""
    found = core.ffi.new("tlm_runtime_statistics *")
    core.lib.tlm_runtime_stats(0, found)
    return int(found.total_count)


def main(rounds: int, scale: float) -> None:
    seconds: dict[str, dict[str, list[float]]] = {}
    made: dict[str, dict[str, float]] = {}
    for name, (turns, each) in ways(scale).items():
        seconds[name] = {way: [] for way in each}
        for call in each.values():  # plans
            call()
        before = {}
        for way, call in each.items():
            before[way] = objects()
            call()
            made.setdefault(name, {})[way] = (objects() - before[way]) / turns
        for _ in range(rounds):
            for way, call in each.items():
                began = time.process_time()
                call()
                seconds[name][way].append((time.process_time() - began) / turns)
    print(json.dumps({"seconds": seconds, "objects": made}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
