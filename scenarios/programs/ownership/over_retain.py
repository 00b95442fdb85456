"""A reader acquires each batch and releases none: the scope's exit frees nothing that was read.

Fixed: The reader of over-retain, with a release for each acquire, also when reading fails.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "reader"
CLASS = "over-retained"
COUNT = 2000
BYTES = 16_384_000


def read(batch: tlmem.Tensor) -> float:
    tlmem.acquire(batch, "reader")
    try:
        return float(batch.sum().item())
    finally:
        if FIXED:
            tlmem.release(batch, "reader")


def main() -> None:
    total = 0.0
    for step in repeat(2000, fixed=6_000):
        with tlmem.scope("step"):
            batch = tlmem.full((16, 64), step)  # leaks here
            total += read(batch)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
