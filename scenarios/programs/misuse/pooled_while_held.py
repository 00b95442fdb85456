"""A buffer is put into its pool while a reader still holds it, who would see it change.

Fixed: The reader lets go of the buffer before it goes back to its pool.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32

buffers = tlmem.TensorPool(name="buffers")


def main() -> None:
    weight = tlmem.ones((16, 64))
    total, refused = 0.0, 0
    for step in repeat(16_000, fixed=4_000):
        with tlmem.scope("step"):
            pooled = buffers.acquire((16, 64))
            buffer = tlmem.empty((16, 64)) if pooled is None else pooled
            tlmem.multiply(weight, step, out=buffer)
            is_read = step % 500 == 0
            if is_read:
                tlmem.acquire(buffer, "reader")
            total += float(buffer.sum().item())
            if is_read and FIXED:
                tlmem.release(buffer, "reader")
            try:
                buffers.release(buffer)  # pooled-while-held here
            except tlmem.StillHeld:
                refused += 1
                tlmem.release(buffer, "reader")
                buffers.release(buffer)
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
