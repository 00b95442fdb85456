"""N-Queens compiled: the losses of eager execution to the bit, fewer events, nothing that grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from runtime.queens import books
from tlmem.scenarios.programs.healthy import nqueens, nqueens_compiled

import tlmem

EPOCHS = 60
MADE_TO_LAST = ("crowding", "total_loss", "solve")


def eager_losses(seed: int, epochs: int) -> list[float]:
    """The loss of each epoch, by the functions of the scenario that is not compiled."""
    board = tlmem.randn((8, 8), "float64", seed=seed, requires_grad=True)
    losses = []
    for _ in tlmem.steps(epochs):
        loss = nqueens.total_loss(tlmem.softmax(board, 1))
        losses.append(loss.item())
        loss.backward()
        board = tlmem.detach(board - nqueens.RATE * board.grad).requires_grad_()
    return losses


@pytest.fixture(autouse=True)
def nothing_planned_is_left() -> Iterator[None]:
    """The functions of the scenario give back their memory."""
    yield
    for each in MADE_TO_LAST:
        getattr(nqueens_compiled, each).compiled.clear()


def eager_solve(seed: int, epochs: int) -> tuple[int, float]:
    """``solve`` as it was written, with losses that are not compiled either."""
    written: Any = nqueens_compiled.solve.__wrapped__
    names = {**written.__globals__, "total_loss": nqueens.total_loss}
    return type(written)(written.__code__, names)(seed, epochs)


def test_losses_are_those_of_eager_execution_to_the_bit() -> None:
    for seed in (20, 21):
        losses = eager_losses(seed, EPOCHS)
        for epochs in (1, 2, 17, EPOCHS):
            assert nqueens_compiled.solve(seed, epochs) == (epochs - 1, losses[epochs - 1])
            assert eager_solve(seed, epochs) == (epochs - 1, losses[epochs - 1])


def test_a_board_that_is_solved_leaves_in_the_same_epoch() -> None:
    found = [nqueens_compiled.solve(seed, 700) for seed in (4, 13)]
    assert found == [eager_solve(seed, 700) for seed in (4, 13)]


def test_an_epoch_leaves_nothing_behind() -> None:
    for epochs in (2, 3):  # that the number changes is known from the second on
        nqueens_compiled.solve(20, epochs)
    before = books()
    for epochs in (1, 10, 40):
        nqueens_compiled.solve(20, epochs)
        assert books() == before


def events(solve: Any, trace: Any, epochs: int) -> Counter[str]:
    """How many events of each kind a descent makes, after one that planned."""
    for warm in (2, 3):
        solve(20, warm)
    with trace() as t:
        solve(20, epochs)
    return Counter(kind for kind, *_ in t.rows())


def test_an_epoch_makes_fewer_events_of_every_kind_that_changes(trace) -> None:
    eager = events(eager_solve, trace, EPOCHS)
    compiled = events(nqueens_compiled.solve, trace, EPOCHS)
    fewer = {kind: eager[kind] - compiled[kind] for kind in eager | compiled}

    assert all(count >= 0 for count in fewer.values()), fewer
    # In each epoch the record of a difference that is only detached, and the view that detaches.
    assert fewer["TAPE_RECORD"] == fewer["DETACH"] == EPOCHS
    # The view is an object, too, and so are the two tensors that tell whether the queens stand.
    assert fewer["ALLOC"] == fewer["FREE"] == EPOCHS + 2
    assert sum(compiled.values()) < sum(eager.values())


def test_what_is_only_read_is_in_planned_memory() -> None:
    nqueens_compiled.solve(20, 2)
    (made,) = nqueens_compiled.solve.compiled.specialisations
    assert sorted(each.nbytes for each in made.plan.placed.values()) == [8, 64]
    assert "it may need a gradient" in made.plan.refused.values()
