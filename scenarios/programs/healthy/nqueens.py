"""Eight queens by gradient descent: a graph, its gradients and a new board in each epoch."""

import sys
from collections.abc import Callable

import tlmem

OUTCOME = "stable"
SIZE, EPOCHS, RATE = 8, 2000, 0.5
DIAGONALS = 2 * SIZE - 1


def diagonals(lies_on: Callable[[int, int, int], bool]) -> tlmem.Tensor:
    """1 for each square of each diagonal, else 0."""
    squares = [(k, r, c) for k in range(DIAGONALS) for r in range(SIZE) for c in range(SIZE)]
    ones = [1.0 if lies_on(k, r, c) else 0.0 for k, r, c in squares]
    return tlmem.tensor(ones, "float64").reshape(DIAGONALS, SIZE, SIZE)


ANTI = diagonals(lambda k, r, c: r + c == k)
MAIN = diagonals(lambda k, r, c: r - c + SIZE - 1 == k)


def crowding(p: tlmem.Tensor, mask: tlmem.Tensor) -> tlmem.Tensor:
    on_each = tlmem.sum(tlmem.sum(tlmem.reshape(p, 1, SIZE, SIZE) * mask, 2), 1)
    return tlmem.sum(tlmem.relu(on_each - 1) ** 2)


def total_loss(p: tlmem.Tensor) -> tlmem.Tensor:
    columns = tlmem.sum((tlmem.sum(p, 0) - 1) ** 2)
    undecided = 0.05 * tlmem.sum(p * (1 - p))
    return columns + crowding(p, ANTI) + crowding(p, MAIN) + undecided


def solve(seed: int) -> tuple[int, float]:
    """The epoch in which the queens stood, or the last one, and the loss then."""
    board = tlmem.randn((SIZE, SIZE), "float64", seed=seed, requires_grad=True)
    for epoch in tlmem.steps(EPOCHS):
        p = tlmem.softmax(board, 1)
        loss = total_loss(p)
        if epoch % 100 == 0 and tlmem.sum(p > 0.5).item() == SIZE:
            break
        loss.backward()
        assert board.grad is not None
        board = tlmem.detach(board - RATE * board.grad).requires_grad_()
    return epoch, loss.item()


def main(boards: int = 3) -> None:
    for seed in range(20, 20 + boards):
        epoch, loss = solve(seed)
        print(f"board {seed}: epoch {epoch}, loss {loss:.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
