"""Every tensor is freed, yet the driver of its device keeps the memory: resident memory grows.

Fixed: The device of driver-growth under a policy that uses freed memory again: one buffer is
enough.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "driver"


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing" if FIXED else "direct")
    total = 0.0
    for step in repeat(12_000, fixed=6_000):
        with tlmem.scope("step"):
            batch = tlmem.full((64, 64), step, device="sim-metal")
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
