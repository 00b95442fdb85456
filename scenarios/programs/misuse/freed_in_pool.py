"""A buffer is freed by hand while its pool keeps it; the pool finds that when it is next asked.

Fixed: Buffers go back to their pool, and nobody frees them by hand.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32

buffers = tlmem.TensorPool(name="buffers")


def take() -> tlmem.Tensor:
    pooled = buffers.acquire((16, 64))  # stale-record here
    return tlmem.empty((16, 64)) if pooled is None else pooled


def main() -> None:
    total = 0.0
    weight = tlmem.ones((16, 64))
    for step in repeat(16_000, fixed=4_000):
        with tlmem.scope("step"):
            buffer = take()
            tlmem.multiply(weight, step, out=buffer)
            total += float(buffer.sum().item())
            buffers.release(buffer)
        if not FIXED and step % 500 == 0:
            buffer.free()
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
