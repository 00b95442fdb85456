"""What keeping memory for later saves a training loop: one MLP, its tensors made in several ways.

All ways compute the same in the same order, and take turns in each round. Prints JSON: for each
size and way the seconds of each round, and how many tensors a step made.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tlmem

INPUTS, CLASSES, RATE = 784, 10, 0.1
SIZES = {"batch 64, hidden 128": (64, 128, 60), "batch 512, hidden 512": (512, 512, 4)}
Take = Callable[..., Any]
Step = Callable[[Any, Any], None]


def model(hidden: int, batch: int) -> list[np.ndarray]:
    """Weights, then images and labels of one batch."""
    random = np.random.default_rng(7)
    labels = np.eye(CLASSES, dtype=np.float32)[random.integers(0, CLASSES, batch)]
    arrays = [
        random.normal(0.0, 0.05, (INPUTS, hidden)),
        np.zeros(hidden),
        random.normal(0.0, 0.05, (hidden, CLASSES)),
        np.zeros(CLASSES),
        random.random((batch, INPUTS)),
    ]
    return [*(array.astype(np.float32) for array in arrays), labels]


def nothing(*shape: int, dtype: str = "float32") -> None:
    """No destination: the operation makes a new one."""


def train(library: Any, take: Take, parts: list[Any]) -> None:
    """One step of gradient descent; ``take`` gives each operation its destination, or None."""
    first, first_bias, second, second_bias, x, y = parts
    (batch, inputs), hidden = x.shape, first_bias.shape[0]
    row, tall, wide = (batch, 1), (batch, CLASSES), (batch, hidden)
    product = library.matmul(x, first, out=take(*wide))
    biased = library.add(product, first_bias, out=take(*wide))
    active = library.maximum(biased, 0.0, out=take(*wide))
    logits = library.matmul(active, second, out=take(*tall))
    raised = library.add(logits, second_bias, out=take(*tall))
    highest = library.max(raised, axis=1, keepdims=True, out=take(*row))
    shifted = library.subtract(raised, highest, out=take(*tall))
    powers = library.exp(shifted, out=take(*tall))
    total = library.sum(powers, axis=1, keepdims=True, out=take(*row))
    likely = library.divide(powers, total, out=take(*tall))
    wrong = library.subtract(likely, y, out=take(*tall))
    error = library.multiply(wrong, 1 / batch, out=take(*tall))
    back = library.matmul(error, second.T, out=take(*wide))
    alive = library.greater(active, 0.0, out=take(*wide, dtype="bool"))
    masked = library.multiply(back, alive, out=take(*wide))
    gradients = [
        library.matmul(x.T, masked, out=take(inputs, hidden)),
        library.sum(masked, axis=0, out=take(hidden)),
        library.matmul(active.T, error, out=take(hidden, CLASSES)),
        library.sum(error, axis=0, out=take(CLASSES)),
    ]
    for weight, gradient in zip(parts, gradients, strict=False):
        change = library.multiply(gradient, RATE, out=take(*weight.shape))
        library.subtract(weight, change, out=weight)


def in_scope(parts: list[Any]) -> None:
    """Every result is a new tensor, which ends with the step."""
    with tlmem.scope("step"):
        train(tlmem, nothing, parts)


def from_pool(pool: tlmem.TensorPool) -> Callable[[list[Any]], None]:
    """Every result is a tensor of the pool, which gets it back at the end of the step."""

    def step(parts: list[Any]) -> None:
        taken = []

        def take(*shape: int, dtype: str = "float32") -> Any:
            taken.append(tlmem.empty(shape, dtype, pool=pool))
            return taken[-1]

        train(tlmem, take, parts)
        for tensor in taken:
            pool.release(tensor)

    return step


def with_numpy(parts: list[Any]) -> None:
    """The same with NumPy's own arrays."""
    train(np, nothing, parts)


def buffers(policy: str) -> Callable[[], None]:
    """Puts the device's buffers under a policy."""
    return lambda: tlmem.device("cpu").policy(policy)


def prepared(pool: tlmem.TensorPool) -> dict[str, tuple[Callable[[], None], Any, Any]]:
    """Each way: what comes before a round, how a step is done, what makes its tensors."""
    bounded = buffers("bounded")
    return {
        "direct": (buffers("direct"), in_scope, tlmem.tensor),
        "bounded": (bounded, in_scope, tlmem.tensor),
        "pool": (bounded, from_pool(pool), tlmem.tensor),
        "numpy": (bounded, with_numpy, np.array),
    }


def measure(batch: int, hidden: int, steps: int, rounds: int) -> dict[str, Any]:
    """Seconds of each round, by way."""
    pool = tlmem.TensorPool(64, name="training")
    ways = prepared(pool)
    arrays = model(hidden, batch)
    parts = {name: [make(array) for array in arrays] for name, (_, _, make) in ways.items()}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, (prepare, step, _) in ways.items():
            prepare()
            step(parts[name])
            began = time.perf_counter_ns()
            for _ in range(steps):
                step(parts[name])
            if turn:
                found[name].append((time.perf_counter_ns() - began) / steps / 1e9)
    sums = {name: float(weights[0].sum()) for name, weights in parts.items()}
    if max(sums.values()) - min(sums.values()) > 0.01 * abs(sums["numpy"]) + 0.1:
        sys.exit(f"the ways do not compute the same: {sums}")
    return {"seconds": found, "hit rate": pool.stats().hit_rate}


if __name__ == "__main__":
    turns, scale = int(sys.argv[1]), float(sys.argv[2])
    done = {
        name: measure(batch, hidden, max(1, int(steps * scale)), turns)
        for name, (batch, hidden, steps) in SIZES.items()
    }
    print(json.dumps(done))
