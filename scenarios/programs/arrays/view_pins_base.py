"""A short summary of each frame is kept, but it is a view, and the view keeps the whole frame.

Fixed: Of each frame a number is kept, and of the latest ones a copy of their brightest row.
"""

from collections import deque
from collections.abc import MutableSequence

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "view-pins-base"
HELD_BY = "list 'rows' (local variable of main() at view_pins_base.py) through the view's base"
COUNT = 2000
BYTES = 307_200_000


class Camera:
    """Makes one frame after the other."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(7)

    def frame(self) -> np.ndarray:
        return self.chance.random((120, 160))  # leaks here


def brightest_row(frame: np.ndarray) -> np.ndarray:
    """The row with most light: 160 numbers that, as a view, keep 19 200 alive."""
    row = frame[int(np.argmax(frame.sum(axis=1)))]
    return row.copy() if FIXED else row


def main() -> None:
    camera = Camera()
    rows: MutableSequence[np.ndarray] = deque(maxlen=20) if FIXED else []
    light = []
    for _ in repeat(2000, fixed=400):
        frame = camera.frame()
        smooth = np.sort((frame[1:] + frame[:-1]) / 2, axis=None, kind="stable")
        rows.append(brightest_row(smooth if smooth.max() < 0 else frame))
        light.append(float(rows[-1].sum()))
    print(f"kept {len(rows)} rows, {sum(row.nbytes for row in rows)} bytes, {len(light)} numbers")


if __name__ == "__main__":
    main()
