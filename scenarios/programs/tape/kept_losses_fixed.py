"""The evaluation of kept-losses, which keeps numbers."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"
STEPS = 16_000


def main() -> None:
    weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
    batch = tlmem.randn((16, 32), seed=2)
    losses = []
    for _ in long_enough(STEPS):
        distance = batch @ weight
        losses.append(tlmem.mean(distance**2).item())
    print(f"{sum(losses):.3e}")


if __name__ == "__main__":
    main()
