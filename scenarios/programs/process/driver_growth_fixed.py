"""The device of driver-growth under a policy that uses freed memory again: one buffer is enough."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing")
    total = 0.0
    for step in long_enough(6_000):
        with tlmem.scope("step"):
            batch = tlmem.full((64, 64), step, device="sim-metal")
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
