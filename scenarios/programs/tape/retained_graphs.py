"""Each pass is told to retain its graph, and the losses are kept: so are all saved values.

Fixed: The steps of retained-graphs, each with one pass that spends its graph, and numbers kept.
"""

from tlmem.scenarios.harness.switch import FIXED

import tlmem

OUTCOME = "leak"
HELD_BY = "tape 'power'"
CLASS = "saved-outlives-backward"
COUNT = 2000
BYTES = 4_096_000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 32), seed=2)
    losses: list[tlmem.Tensor | float] = []
    for _ in tlmem.steps(18_000 if FIXED else 2000):
        distance = batch @ weight  # leaks here
        loss = tlmem.mean(distance**2)
        if FIXED:
            loss.backward()
            losses.append(loss.item())
        else:
            loss.backward(retain_graph=True)
            losses.append(loss)
        assert weight.grad is not None
        with tlmem.no_grad():
            tlmem.subtract(weight, 0.01 * weight.grad, out=weight)
    print(f"{float(losses[-1]):.3e}")


if __name__ == "__main__":
    main()
