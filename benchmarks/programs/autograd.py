"""What a training step costs, with tlmem and with PyTorch, one thread each.

Prints JSON: for each model and library the seconds of a step in each round, likewise of forward and
backward alone, and of the matrix products of the largest. All take turns in each round. PyTorch
takes part when it is installed.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from autograd_models import LIBRARIES, MODELS, LargeMLP, Model, products, torch

TURNS, SCALE = int(sys.argv[1]), float(sys.argv[2])
ROUND_S = 0.3 * SCALE
WARM_UP = 3
AGREE = 2e-3
Case = Callable[[], None]


def alone(model: Model) -> Case:
    """Forward and backward, without an update."""

    def run() -> None:
        model.loss().backward()
        for weight in model.weights:
            weight.grad = None

    return run


def cases() -> dict[str, dict[str, Case]]:
    """For each model and library what is done once."""
    found: dict[str, dict[str, Case]] = {}
    for name, make in MODELS.items():
        models = {library.name: make(library) for library in LIBRARIES}
        require_agreement(name, models)
        found[name] = {library: model.step for library, model in models.items()}
        if name == "mlp 32":
            found["mlp 32, gradients"] = {
                library: alone(model) for library, model in models.items()
            }
    found["large mlp"]["products"] = products(LargeMLP)
    return found


def require_agreement(name: str, models: dict[str, Model]) -> None:
    """Ends the program when the libraries do not compute the same."""
    losses: dict[str, float] = {}
    for library, model in models.items():
        for _ in range(WARM_UP):
            model.step()
        losses[library] = float(model.loss().item())
    if max(losses.values()) - min(losses.values()) > AGREE * abs(losses["tlmem"]):
        sys.exit(f"the losses of {name} differ: {losses}")


def timed(case: Case, count: int) -> float:
    """Seconds each."""
    began = time.perf_counter_ns()
    for _ in range(count):
        case()
    return (time.perf_counter_ns() - began) / count / 1e9


def measure() -> dict[str, Any]:
    """Every case in every round; one that takes long is done once in each."""
    every = cases()
    counts = {name: max(1, int(ROUND_S / timed(row["tlmem"], 3))) for name, row in every.items()}
    found: dict[str, Any] = {name: {way: [] for way in row} for name, row in every.items()}
    for _ in range(TURNS):
        for name, row in every.items():
            for way, case in row.items():
                found[name][way].append(timed(case, counts[name]))
    return found


if __name__ == "__main__":
    if torch:
        torch.set_num_threads(1)
    print(json.dumps({"seconds": measure(), "torch": torch and torch.__version__}))
