"""A weight is updated between the loss and its backward pass, which would read the new values.

Fixed: A weight is updated when the backward pass that reads it is over.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "stable"
COUNT = 20


def update(weight: tlmem.Tensor) -> None:
    with tlmem.no_grad():
        tlmem.multiply(weight, 0.999, out=weight)


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2, requires_grad=True)
    refused = 0
    for step in tlmem.steps(24_000 if FIXED else 30_000):
        loss = tlmem.sum(batch @ weight)
        if not FIXED and step % 1500 == 0:
            update(weight)
        try:
            loss.backward()  # in-place-on-saved here
        except tlmem.InPlaceOnSaved:
            refused += 1
        if FIXED and step % 1000 == 0:
            update(weight)
    print(f"{refused} refused")


if __name__ == "__main__":
    main()
