"""Weights stay where they were made, batches come from another device; now and then both meet.

Fixed: Batches from another device are copied to that of the weights before both meet.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 36


def main() -> None:
    tlmem.device("sim-metal").policy("persistent-reusing")
    weight, total, refused = tlmem.ones((16, 64)), 0.0, 0
    for step in repeat(36_000, fixed=4_000):
        with tlmem.scope("step"):
            there = "sim-metal" if step % (10 if FIXED else 1000) == 0 else "cpu"
            batch = tlmem.full((16, 64), step, device=there)
            if FIXED:
                batch = batch.to("cpu")
            try:
                total += float((batch * weight).sum().item())  # wrong-device here
            except tlmem.WrongDevice:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
