"""A layer's result is freed by hand once the loss is known; backward still has to read it.

Fixed: The layer's result is freed by hand when the pass that reads it is over.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "stable"
COUNT = 20


def main() -> None:
    weight = tlmem.randn((16, 16), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 16), seed=2)
    refused = 0
    for step in tlmem.steps(16_000 if FIXED else 24_000):
        hidden = tlmem.relu(batch @ weight)
        loss = tlmem.sum(hidden * hidden)
        if not FIXED and step % 1200 == 0:
            hidden.free()
        try:
            loss.backward()  # use-after-free here
        except tlmem.UseAfterFree:
            refused += 1
        if FIXED:
            hidden.free()
    print(f"{refused} refused")


if __name__ == "__main__":
    main()
