"""Losses of an evaluation are kept with their history: no backward pass will ever use it up.

Fixed: The evaluation of kept-losses, which keeps numbers.
"""

from tlmem.scenarios.programs.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'power'"
CLASS = "tape-not-released"
COUNT = 2000
BYTES = 4_096_000


def main() -> None:
    weight = tlmem.randn((2048, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 2048), seed=2)
    losses = []
    for _ in repeat(2000, fixed=4_000):
        distance = batch @ weight  # leaks here
        loss = tlmem.mean(distance**2)
        losses.append(loss.item() if FIXED else loss)
    print(f"{sum(map(float, losses)):.3e}")


if __name__ == "__main__":
    main()
