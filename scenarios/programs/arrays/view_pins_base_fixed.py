"""Of each frame a number is kept, and of the latest ones a copy of their brightest row."""

from collections import deque

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


class Camera:
    """Makes one frame after the other."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(7)

    def frame(self) -> np.ndarray:
        return self.chance.random((120, 160))


def brightest_row(frame: np.ndarray) -> np.ndarray:
    """The row with most light, as memory of its own."""
    return frame[int(np.argmax(frame.sum(axis=1)))].copy()


def main() -> None:
    camera = Camera()
    rows: deque[np.ndarray] = deque(maxlen=20)
    light = []
    for _ in long_enough(2000):
        rows.append(brightest_row(camera.frame()))
        light.append(float(rows[-1].sum()))
    print(f"kept {len(rows)} rows and {len(light)} numbers")


if __name__ == "__main__":
    main()
