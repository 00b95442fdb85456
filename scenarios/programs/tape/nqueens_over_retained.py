"""Eight queens in a program that acquires a tensor each time it is read, as a struct would.

Nothing releases those counts: the graph of an epoch never goes, however early the tape lets it go.
"""

from tlmem.scenarios.programs.healthy.nqueens import ANTI, MAIN, RATE, SIZE

import tlmem

OUTCOME = "leak"
TWIN = "nqueens"
HELD_BY = "struct Tensor"
CLASS = "over-retained"
COUNT = 1600
BYTES = 12_288_000
EPOCHS = 800


def read(variable: tlmem.Tensor) -> tlmem.Tensor:
    return tlmem.acquire(variable, "struct Tensor")


def squared_excess(count: tlmem.Tensor) -> tlmem.Tensor:
    return tlmem.sum(count**2)


def total_loss(p: tlmem.Tensor) -> tlmem.Tensor:
    total = squared_excess(tlmem.sum(read(p), 0) - 1)
    for mask in (ANTI, MAIN):
        placed = tlmem.reshape(p, 1, SIZE, SIZE) * mask  # leaks here
        on_each = tlmem.sum(tlmem.sum(tlmem.acquire(placed, "struct Tensor"), 2), 1)
        total = total + squared_excess(tlmem.relu(on_each - 1))
    return total + 0.05 * tlmem.sum(read(p) * (1 - read(p)))


def main() -> None:
    board = tlmem.randn((SIZE, SIZE), "float64", seed=22, requires_grad=True)
    for _ in tlmem.steps(EPOCHS):
        loss = total_loss(tlmem.softmax(board, 1))
        loss.backward()
        board = tlmem.detach(board - RATE * board.grad).requires_grad_()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
