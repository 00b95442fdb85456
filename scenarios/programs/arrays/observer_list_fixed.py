"""Each plot of observer-list takes its subscription back when it is done."""

from collections.abc import Callable

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


class Model:
    """Tells its observers about every change."""

    def __init__(self) -> None:
        self.weights = np.zeros(100)
        self.observers: list[Callable[[np.ndarray], None]] = []

    def step(self) -> None:
        self.weights = self.weights + 0.1
        for observer in self.observers[-5:]:
            observer(self.weights)


class Plot:
    """A picture of the weights at one moment."""

    def __init__(self, model: Model) -> None:
        self.canvas = np.zeros((40, 100))
        self.model = model
        model.observers.append(self.draw)

    def draw(self, weights: np.ndarray) -> None:
        self.canvas[0] = weights

    def close(self) -> None:
        self.model.observers.remove(self.draw)


def main() -> None:
    model = Model()
    for _ in long_enough(20_000):
        plot = Plot(model)
        for _ in range(5):
            model.step()
        plot.close()


if __name__ == "__main__":
    main()
