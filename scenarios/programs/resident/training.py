"""Steps of a small network by hand: weights that stay, batches and gradients that go."""

import time

import numpy as np


def main() -> None:
    chance = np.random.default_rng(4)
    weights = [chance.standard_normal((1_200, 1_200)) for _ in range(6)]
    for step in range(15):
        value = np.ones((80 + 20 * (step % 7), 1_200))
        values = [value]
        for weight in weights:
            value = np.tanh(value @ weight * 0.01)
            values.append(value)
        gradient = value
        for n in reversed(range(len(weights))):
            gradient = gradient * (1.0 - values[n + 1] ** 2)
            weights[n] -= 1e-3 * (values[n].T @ gradient)
            gradient = gradient @ weights[n].T
        time.sleep(0.01)
    print(float(weights[0].mean()))


if __name__ == "__main__":
    main()
