"""Buffers go back to a pool that nobody asks: all of them are kept, and all are made anew.

Fixed: The buffers of pool-never-read come out of the pool again: one is enough.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "pool 'buffers'"
CLASS = "pool-never-hits"
COUNT = 2000
BYTES = 16_384_000

buffers = tlmem.TensorPool(max_per_key=1_000_000, name="buffers")


def main() -> None:
    total = 0.0
    for step in repeat(2000, fixed=6_000):
        with tlmem.scope("step"):
            buffer = tlmem.full((16, 64), step, pool=buffers if FIXED else None)  # leaks here
            total += float(buffer.sum().item())
            buffers.release(buffer)
    print(f"{total:.3e}, {len(buffers)} kept")


if __name__ == "__main__":
    main()
