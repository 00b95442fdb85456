"""Eight queens by gradient descent, compiled: the same losses with fewer events in each epoch."""

from tlmem.scenarios.programs.healthy.nqueens import ANTI, EPOCHS, MAIN, RATE, SIZE

import tlmem

OUTCOME = "stable"


@tlmem.compile
def crowding(p: tlmem.Tensor, mask: tlmem.Tensor) -> tlmem.Tensor:
    on_each = tlmem.sum(tlmem.sum(tlmem.reshape(p, 1, SIZE, SIZE) * mask, 2), 1)
    return tlmem.sum(tlmem.relu(on_each - 1) ** 2)


@tlmem.compile
def total_loss(p: tlmem.Tensor) -> tlmem.Tensor:
    columns = tlmem.sum((tlmem.sum(p, 0) - 1) ** 2)
    undecided = 0.05 * tlmem.sum(p * (1 - p))
    return columns + crowding(p, ANTI) + crowding(p, MAIN) + undecided


@tlmem.compile
def solve(seed: int, epochs: int) -> tuple[int, float]:
    """The epoch in which the queens stood, or the last one, and the loss then."""
    board = tlmem.randn((SIZE, SIZE), "float64", seed=seed, requires_grad=True)
    for epoch in tlmem.steps(epochs):
        p = tlmem.softmax(board, 1)
        loss = total_loss(p)
        if epoch % 100 == 0 and tlmem.sum(p > 0.5).item() == SIZE:
            break
        loss.backward()
        assert board.grad is not None
        board = tlmem.detach(board - RATE * board.grad).requires_grad_()
    return epoch, loss.item()


def main() -> None:
    for seed in range(20, 23):
        epoch, loss = solve(seed, EPOCHS)
        print(f"board {seed}: epoch {epoch}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
