"""Buffers go back to their pool, and nobody frees them by hand."""

import tlmem

OUTCOME = "stable"


buffers = tlmem.TensorPool(name="buffers")


def take() -> tlmem.Tensor:
    pooled = buffers.acquire((16, 64))
    return tlmem.empty((16, 64)) if pooled is None else pooled


def main() -> None:
    total = 0.0
    weight = tlmem.ones((16, 64))
    for step in range(16_000):
        with tlmem.scope("step"):
            buffer = take()
            tlmem.multiply(weight, step, out=buffer)
            total += float(buffer.sum().item())
            buffers.release(buffer)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
