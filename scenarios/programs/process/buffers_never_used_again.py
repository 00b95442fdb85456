"""A device keeps every buffer that is freed and hands none out again: what it keeps only grows.

Fixed: The device of buffers-never-used-again under a policy that uses what it keeps.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "driver"
CLASS = "pool-never-hits"
COUNT = 16_000


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing" if FIXED else "persistent")
    total = 0.0
    for step in repeat(8_000, fixed=6_000):
        with tlmem.scope("step"):
            batch = tlmem.full((64, 64), step, device="sim-metal")
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
