"""A tensor goes to the pool when it is used, once."""

import tlmem

OUTCOME = "stable"


buffers = tlmem.TensorPool(name="buffers")


def main() -> None:
    total = 0.0
    for step in range(16_000):
        buffer = tlmem.full((16, 64), step, pool=buffers)
        total += float(buffer.sum().item())
        buffers.release(buffer)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
