"""A small network learns; weights and moments are replaced in each step, the losses are numbers."""

import numpy as np

OUTCOME = "stable"


class Adam:
    """The usual optimiser; its moments are made in the first step."""

    def __init__(self, rate: float) -> None:
        self.rate, self.steps = rate, 0
        self.first: list[np.ndarray] = []
        self.second: list[np.ndarray] = []

    def update(self, weights: list[np.ndarray], grads: list[np.ndarray]) -> list[np.ndarray]:
        if not self.first:
            self.first = [np.zeros_like(weight) for weight in weights]
            self.second = [np.zeros_like(weight) for weight in weights]
        self.steps += 1
        self.first = [0.9 * m + 0.1 * g for m, g in zip(self.first, grads, strict=True)]
        self.second = [0.999 * v + 0.001 * g * g for v, g in zip(self.second, grads, strict=True)]
        scale = self.rate * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        return [
            weight - scale * m / (np.sqrt(v) + 1e-8)
            for weight, m, v in zip(weights, self.first, self.second, strict=True)
        ]


def main() -> None:
    chance = np.random.default_rng(0)
    inputs = chance.normal(size=(256, 32))
    targets = np.sin(inputs[:, :1])
    weights = [chance.normal(size=(32, 64)) / 6, np.zeros(64), chance.normal(size=(64, 1)) / 8]
    optimiser = Adam(0.01)
    losses = []
    for _ in range(1500):
        hidden = np.tanh(inputs @ weights[0] + weights[1])
        error = hidden @ weights[2] - targets
        losses.append(float((error**2).mean()))
        back = (error @ weights[2].T) * (1 - hidden**2)
        grads = [inputs.T @ back, back.sum(axis=0), hidden.T @ error]
        weights = optimiser.update(weights, [grad / len(inputs) for grad in grads])
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
