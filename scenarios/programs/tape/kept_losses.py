"""Losses of an evaluation are kept with their history: no backward pass will ever use it up."""

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'power'"
CLASS = "tape-not-released"
COUNT = 2000
BYTES = 4_096_000
STEPS = 2000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 32), seed=2)
    losses = []
    for _ in range(STEPS):
        distance = batch @ weight  # leaks here
        losses.append(tlmem.mean(distance**2))
    print(f"{sum(loss.item() for loss in losses):.3e}")


if __name__ == "__main__":
    main()
