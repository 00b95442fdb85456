"""The losses of all steps are added up as tensors: each step hangs on all those before it.

Fixed: The losses of running-total are added up as numbers, which hang on nothing.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "leak"
CLASS = "tape-growth"


def main() -> None:
    weight = tlmem.ones(4, requires_grad=True)
    total: tlmem.Tensor | float = 0.0
    for _ in tlmem.steps(40_000 if FIXED else 30_000):
        loss = (weight * weight).sum()
        loss.backward()
        total = total + (float(loss.item()) if FIXED else loss)
    print(f"{float(total):.3e}")


if __name__ == "__main__":
    main()
