"""Every plot subscribes to the model and none ever unsubscribes.

Fixed: Each plot of observer-list takes its subscription back when it is done.
"""

from collections.abc import Callable

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "list 'observers' of Model (local variable 'model' of main() at observer_list.py) "
    "through a bound method and attribute 'canvas' of Plot"
)
COUNT = 10_000
BYTES = 320_000_000


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
        self.canvas = np.zeros((40, 100))  # leaks here
        model.observers.append(self.draw)

    def draw(self, weights: np.ndarray) -> None:
        self.canvas[0] = weights


def main() -> None:
    model = Model()
    for _ in repeat(10_000, fixed=4_000):
        plot = Plot(model)
        for _ in range(5):
            model.step()
        if FIXED:
            model.observers.remove(plot.draw)
        del plot


if __name__ == "__main__":
    main()
