"""A program whose heap is sampled, on the clock of the test."""

from typing import Any

import numpy as np
from support.traces import Program

RATE = 256_000.0
STEPS, STEP_NS = 2_000, 2_000_000
"""4 s in all."""
LINE, OTHER = 7, 9


class Sampled(Program):
    """A program whose native memory and Python's larger blocks are sampled."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(slowdown=1)
        self.chance = np.random.default_rng(seed)

    def keep(self, line: int, size: int, python: bool = False, steps: int = 0) -> None:
        """Allocates a block, sampled by chance; it is freed after so many steps, or never."""
        chance = float(-np.expm1(-size / RATE))
        died = self.now_ns + steps * STEP_NS if steps else -1
        if self.chance.random() < chance:
            row = {
                "address": len(self.heap),
                "size_bytes": size,
                "is_python": python,
                "of_malloc": True,
                "is_resize": False,
                "weight": 1 / chance,
                "born_ns": self.now_ns,
                "died_ns": died,
                "born_site": self.site_of(line),
                "born_thread": 1,
                "died_thread": int(steps > 0),
            }
            self.heap.append(row)

    def recording(self) -> Any:
        """What the reader would hand to an analysis."""
        recording = super().recording()
        recording.heap_sampled, recording.heap_rate = True, RATE
        return recording
