"""A tensor is freed by who made it, and again by who was handed it; both mean well.

Fixed: Who was handed the tensor frees it, and nobody else does.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 48


def consume(batch: tlmem.Tensor) -> float:
    total = float(batch.sum().item())
    batch.free()
    return total


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(48_000, fixed=4_000):
        batch = tlmem.full((16, 64), step)
        total += consume(batch)
        if not FIXED and step % 1000 == 0:
            try:
                batch.free()  # double-free here
            except tlmem.DoubleFree:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
