"""The switch between a fault and its repair, and how long a program runs.

A scenario with a fault is one file. Run as it is, it has the fault; with the word ``fixed`` it is
the repaired program: ``python over_retain.py fixed``. ``if FIXED:`` marks the place where the two
differ. ``repeat`` is the loop of both: a fault has an exact number of steps, so that its truth can
state how many objects it keeps; a healthy program runs until there is enough to judge.

What a program computes with ``long_enough`` depends on the machine; its memory does not.
"""

import sys
import time
from collections.abc import Iterable, Iterator

WORD = "fixed"
FIXED = sys.argv[1:] == [WORD]
"""Whether this process runs the repaired program."""

LONG_ENOUGH_S = 0.6
"""Four times what a verdict needs, so that it may be given when samples come late."""
SETTLED_S = 2.5
"""For programs that go through phases, as training does: a verdict sees enough of each."""
LONGEST_STEP_S = 0.01
"""A step that took longer counts as this: a busy machine ran something else meanwhile and took no
samples."""


def repeat(faulty: int, *, fixed: int, seconds: float = LONG_ENOUGH_S) -> Iterable[int]:
    """The steps of a program: exactly ``faulty``, or ``long_enough(fixed)`` when repaired."""
    return long_enough(fixed, seconds) if FIXED else range(faulty)


def long_enough(least: int, seconds: float = LONG_ENOUGH_S) -> Iterator[int]:
    """0, 1, 2, ...: at least so many, and until they have taken so long."""
    taken, before, step = 0.0, time.monotonic(), 0
    while step < least or taken < seconds:
        yield step
        now = time.monotonic()
        taken, before = taken + min(now - before, LONGEST_STEP_S), now
        step += 1
