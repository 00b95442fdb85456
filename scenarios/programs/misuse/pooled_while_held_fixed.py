"""The reader lets go of the buffer before it goes back to its pool."""

import tlmem

OUTCOME = "stable"


buffers = tlmem.TensorPool(name="buffers")


def main() -> None:
    total = 0.0
    weight = tlmem.ones((16, 64))
    for step in range(16_000):
        with tlmem.scope("step"):
            pooled = buffers.acquire((16, 64))
            buffer = tlmem.empty((16, 64)) if pooled is None else pooled
            tlmem.multiply(weight, step, out=buffer)
            tlmem.acquire(buffer, "reader")
            total += float(buffer.sum().item())
            tlmem.release(buffer, "reader")
            buffers.release(buffer)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
