"""The loop of a training: gradients go at the end of each iteration.

Covers: ``steps``. Does not cover: clearing by hand (``tape``).
See also: docs/reference/tape.md, "Gradients of a step".
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index

from tlmem.runtime.autograd import tape


def steps(n: int, clear_grads: bool = True) -> Steps:
    """``for step in steps(n): ...``: 0 to n - 1, with no gradients left at the begin of each.

    Gradients are cleared where an iteration ends, by reaching its end or by ``continue``. After
    ``break``, ``return`` or an exception they are still there.

    Args:
        n: how often.
        clear_grads: False lets gradients accumulate from step to step.
    Raises:
        TypeError: n is not a whole number. ValueError: it is negative.
    Source: docs/seed-map.md, S24.
    """
    return Steps(n, clear_grads)


class Steps:
    """A loop over the numbers of steps; made by ``steps``. It can be run once."""

    __slots__ = ("_clears", "_step", "n")

    def __init__(self, n: int, clear_grads: bool) -> None:
        try:
            self.n = index(n)
        except TypeError:
            message = f"a number of steps is a whole number, not {n!r}; write steps(100)"
            raise TypeError(message) from None
        if self.n < 0:
            raise ValueError(f"{self.n} steps cannot be made; give 0 or more")
        self._clears = clear_grads
        self._step = -1

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if 0 <= self._step < self.n and self._clears:
            tape.clear_grads()
        if self._step + 1 >= self.n:
            self._step = self.n
            raise StopIteration
        self._step += 1
        return self._step

    def __length_hint__(self) -> int:
        return max(self.n - self._step - 1, 0)

    def __repr__(self) -> str:
        return f"steps({self.n})" if self._clears else f"steps({self.n}, clear_grads=False)"
