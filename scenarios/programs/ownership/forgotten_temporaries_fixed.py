"""The expression of forgotten-temporaries in a scope for each step, which ends its temporary."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def main() -> None:
    weight, target = tlmem.ones((16, 64)), tlmem.zeros((16, 64))
    for _ in long_enough(14_000):
        with tlmem.scope("step"):
            tlmem.multiply(weight, 0.999, out=weight)
            tlmem.subtract(target, 1.0 - weight, out=target)
    print(target.sum().item())


if __name__ == "__main__":
    main()
