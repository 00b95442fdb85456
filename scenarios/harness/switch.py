"""How long a healthy program runs: for so many steps, and long enough to be judged.

Covers: programs whose steps are so short that a count which is enough on a fast machine takes many
seconds on a slow one. What such a program computes depends on the machine; its memory does not.
"""

import time
from collections.abc import Iterator

LONG_ENOUGH_S = 0.6
"""Four times what a verdict needs, so that it may be given when samples come late."""
LONGEST_STEP_S = 0.01
"""Of a step that took longer no more counts: a busy machine ran something else meanwhile, and no
samples were taken, of which there is one in this time."""


def long_enough(least: int) -> Iterator[int]:
    """0, 1, 2, ...: at least so many, and until they have taken ``LONG_ENOUGH_S``."""
    taken, before, step = 0.0, time.monotonic(), 0
    while step < least or taken < LONG_ENOUGH_S:
        yield step
        now = time.monotonic()
        taken, before = taken + min(now - before, LONGEST_STEP_S), now
        step += 1
