"""Buffers go back to a pool that nobody asks: all of them are kept, and all are made anew."""

import tlmem

OUTCOME = "leak"
HELD_BY = "pool 'buffers'"
CLASS = "pool-never-hits"
COUNT = 2000
BYTES = 16_384_000

buffers = tlmem.TensorPool(max_per_key=1_000_000, name="buffers")


def main() -> None:
    total = 0.0
    for step in range(2000):
        with tlmem.scope("step"):
            buffer = tlmem.full((16, 64), step)  # leaks here
            total += float(buffer.sum().item())
            buffers.release(buffer)
    print(f"{total:.3e}, {len(buffers)} kept")


if __name__ == "__main__":
    main()
