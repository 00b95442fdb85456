"""N-Queens by gradient descent, on tlmem and on NumPy, and the books of one epoch.

Covers: the losses and the descent of the scenario ``nqueens``, a reference whose gradient is
written out by hand, what must be the same at every boundary of an epoch. Does not cover: the
program itself (``scenarios/programs/healthy/nqueens.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from runtime.trace import statistics

import tlmem
from tlmem.runtime.core import lib

SIZE = 8
DIAGONALS = 2 * SIZE - 1
RATE, SPREAD = 0.5, 0.05
NUMBER, ROW, COLUMN = np.ogrid[:DIAGONALS, :SIZE, :SIZE]
ANTI = (ROW + COLUMN == NUMBER).astype(np.float64)
MAIN = (ROW - COLUMN + SIZE - 1 == NUMBER).astype(np.float64)


def random_board(seed: int) -> np.ndarray:
    """The board that ``tlmem.randn`` gives for the seed."""
    return np.random.default_rng(seed).standard_normal((SIZE, SIZE))


def reference_epoch(board: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, placement and gradient of a board, by NumPy and by hand."""
    powers = np.exp(board - board.max(1, keepdims=True))
    placed = powers / powers.sum(1, keepdims=True)
    excess = placed.sum(0) - 1
    loss = np.sum(excess**2) + SPREAD * np.sum(placed * (1 - placed))
    slope = 2 * excess + SPREAD * (1 - 2 * placed)
    for diagonals in (ANTI, MAIN):
        crowded = np.maximum((placed * diagonals).sum((1, 2)) - 1, 0)
        loss += np.sum(crowded**2)
        slope = slope + 2 * np.tensordot(crowded, diagonals, 1)
    inner = np.sum(slope * placed, axis=1, keepdims=True)
    return float(loss), placed, placed * (slope - inner)


class Descent:
    """One board that goes down, on tlmem.

    Args:
        seed: of the board.
        pass_on: called with the placement before its losses are computed; what it gives is used.
        where: ``device=`` and the like, for every tensor that is made of nothing.
    """

    def __init__(
        self,
        seed: int,
        pass_on: Callable[[tlmem.Tensor], tlmem.Tensor] = lambda placed: placed,
        **where: Any,
    ) -> None:
        self.anti = tlmem.tensor(ANTI, **where)
        self.main = tlmem.tensor(MAIN, **where)
        self.board = tlmem.randn((SIZE, SIZE), "float64", seed=seed, requires_grad=True, **where)
        self.pass_on = pass_on

    def placement(self) -> tlmem.Tensor:
        """The share of a queen on each square."""
        return self.pass_on(tlmem.softmax(self.board, 1))

    def loss(self, placed: tlmem.Tensor) -> tlmem.Tensor:
        """Columns with other than one queen, diagonals with more than one, undecided squares."""
        columns = tlmem.sum((tlmem.sum(placed, 0) - 1) ** 2)
        total = columns + SPREAD * tlmem.sum(placed * (1 - placed))
        for diagonals in (self.anti, self.main):
            there = tlmem.reshape(placed, 1, SIZE, SIZE) * diagonals
            crowded = tlmem.relu(tlmem.sum(tlmem.sum(there, 2), 1) - 1)
            total = total + tlmem.sum(crowded**2)
        return total

    def epoch(self, leave: bool = False) -> float:
        """One epoch and its loss; ``leave``: it ends before backward."""
        placed = self.placement()
        loss = self.loss(placed)
        if not leave:
            loss.backward()
            self.board = tlmem.detach(self.board - RATE * self.board.grad).requires_grad_()
        return float(loss.item())


@dataclass(frozen=True)
class Books:
    """What is there at the boundary of an epoch.

    Attributes:
        objects, nbytes: alive, of all devices.
        records, leaves, grads, saved_bytes: on the tape in force.
        depth: of scopes.
    """

    objects: int
    nbytes: int
    records: int
    leaves: int
    grads: int
    saved_bytes: int
    depth: int


def books() -> Books:
    """The books now."""
    now, tape = statistics(), tlmem.tape().stats()
    return Books(
        int(now.current_count),
        int(now.current_bytes),
        tape.records,
        tape.leaves,
        tape.grads,
        tape.saved_bytes,
        int(lib.tlm_scope_depth()),
    )


def balance() -> tuple[int, int]:
    """Objects and bytes that were ever made, less those that were ever freed."""
    now = statistics()
    return now.total_count - now.freed_count, now.total_bytes - now.freed_bytes
