"""A tensor goes to the pool when it is used, and once more when its user is closed.

Fixed: A tensor goes to the pool when it is used, once.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 48

buffers = tlmem.TensorPool(name="buffers")


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(24_000, fixed=4_000):
        buffer = tlmem.full((16, 64), step, pool=buffers)
        total += float(buffer.sum().item())
        buffers.release(buffer)
        if not FIXED and step % 500 == 0:
            try:
                buffers.release(buffer)  # double-pool here
            except tlmem.AlreadyPooled:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
