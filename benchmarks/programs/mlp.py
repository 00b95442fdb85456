"""A two-layer perceptron trained by plain gradient descent in NumPy: array code as it often is."""

import sys
import time
from collections.abc import Callable

import numpy as np

BATCH, INPUTS, HIDDEN, CLASSES = 64, 784, 128, 10


def gradients(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Of the mean cross entropy, in the order of the weights."""
    first, first_bias, second, second_bias = weights
    hidden = np.maximum(x @ first + first_bias, 0.0)
    logits = hidden @ second + second_bias
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = (shifted / shifted.sum(axis=1, keepdims=True) - y) / len(x)
    back = (error @ second.T) * (hidden > 0)
    return [x.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def start() -> Callable[[int], float]:
    """A network on random data; what is returned trains it and gives the sum of its weights."""
    random = np.random.default_rng(7)
    weights = [
        random.normal(0.0, 0.05, (INPUTS, HIDDEN)),
        np.zeros(HIDDEN),
        random.normal(0.0, 0.05, (HIDDEN, CLASSES)),
        np.zeros(CLASSES),
    ]
    images = random.random((1024, INPUTS))
    labels = np.eye(CLASSES)[random.integers(0, CLASSES, len(images))]

    def train(steps: int) -> float:
        for step in range(steps):
            start = step * BATCH % len(images)
            x, y = images[start : start + BATCH], labels[start : start + BATCH]
            for weight, gradient in zip(weights, gradients(weights, x, y), strict=True):
                weight -= 0.1 * gradient
        return float(sum(weight.sum() for weight in weights))

    return train


def prepare() -> dict[str, Callable[[int], object]]:
    """A unit is a step."""
    return {"mlp": start()}


if __name__ == "__main__":
    began = time.monotonic_ns()
    start()(int(3000 * float(sys.argv[1])))
    print(began, time.monotonic_ns())
