"""The N-Queens programs of the seeds, twenty attempts (S35): as the reference says, solved or not.

The reference is NumPy with the gradient written out by hand (``queens.py``), of all boards at once.
"""

from __future__ import annotations

import gc
from functools import cache

import numpy as np
import pytest
from runtime.queens import ANTI, MAIN, RATE, SIZE, SPREAD, balance, books, random_board
from tlmem.scenarios.programs.healthy import nqueens, nqueens_compiled

ATTEMPTS = 20
EVERY = 100
"""Epochs between two looks whether the queens stand."""


def reference_epochs(boards: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses, placements and gradients of boards ``[n, 8, 8]``; ``reference_epoch`` for each."""
    powers = np.exp(boards - boards.max(2, keepdims=True))
    placed = powers / powers.sum(2, keepdims=True)
    excess = placed.sum(1) - 1
    loss = (excess**2).sum(1) + SPREAD * (placed * (1 - placed)).sum((1, 2))
    slope = 2 * excess[:, None] + SPREAD * (1 - 2 * placed)
    for diagonals in (ANTI, MAIN):
        crowded = np.maximum(np.einsum("nrc,krc->nk", placed, diagonals) - 1, 0)
        loss = loss + (crowded**2).sum(1)
        slope = slope + 2 * np.einsum("nk,krc->nrc", crowded, diagonals)
    inner = (slope * placed).sum(2, keepdims=True)
    return loss, placed, placed * (slope - inner)


@cache
def reference() -> list[tuple[int, float]]:
    """Of each attempt: the epoch in which the queens stood, or the last one, and the loss then."""
    boards = np.stack([random_board(seed) for seed in range(ATTEMPTS)])
    ends: dict[int, tuple[int, float]] = {}
    for epoch in range(nqueens.EPOCHS):
        losses, placed, slopes = reference_epochs(boards)
        last = epoch == nqueens.EPOCHS - 1
        if epoch % EVERY == 0 or last:
            stand = (placed > 0.5).sum((1, 2)) == SIZE
            for seed in np.flatnonzero(np.full(ATTEMPTS, True) if last else stand):
                ends.setdefault(int(seed), (epoch, float(losses[seed])))
        boards = boards - RATE * slopes
    return [ends[seed] for seed in range(ATTEMPTS)]


def test_twenty_attempts_end_where_the_reference_ends() -> None:
    solved = [seed for seed, (epoch, _) in enumerate(reference()) if epoch < nqueens.EPOCHS - 1]
    assert 3 <= len(solved) < ATTEMPTS  # both ends are among them
    nqueens.solve(0)
    gc.collect()
    first, made = books(), balance()
    for seed, (epoch, loss) in enumerate(reference()):
        assert nqueens.solve(seed) == (epoch, pytest.approx(loss, rel=1e-6)), seed
        assert (books(), balance()) == (first, made), seed
    # A board that is solved has one queen in each row and column and on no diagonal two.
    assert all(reference()[seed][1] < 0.5 for seed in solved)


def test_twenty_compiled_attempts_end_where_the_reference_ends() -> None:
    try:
        for seed, (epoch, loss) in enumerate(reference()):
            found = nqueens_compiled.solve(seed, nqueens.EPOCHS)
            assert found == (epoch, pytest.approx(loss, rel=1e-6)), seed
    finally:
        for each in ("crowding", "total_loss", "solve"):
            getattr(nqueens_compiled, each).compiled.clear()
