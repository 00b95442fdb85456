"""Each step keeps how its gradient pulls as a tensor with its history, and thus the gradient.

Fixed: The steps of gradients-with-history, which keep a number each and no history.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'multiply'"
CLASS = "grads-outlive-step"
COUNT = 2000
BYTES = 8_192_000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((8, 32), seed=2)
    pulls = []
    for _ in tlmem.steps(12_000 if FIXED else 2000):
        loss = tlmem.mean((batch @ weight) ** 2)
        loss.backward()  # leaks here
        assert weight.grad is not None
        pull = tlmem.sum(weight * weight.grad)
        pulls.append(pull.item() if FIXED else pull)
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{float(pulls[-1]):.3e}")


if __name__ == "__main__":
    main()
