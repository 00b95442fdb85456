"""A reader acquires each batch and releases none: the scope's exit frees nothing that was read."""

import tlmem

OUTCOME = "leak"
HELD_BY = "reader"
CLASS = "over-retained"
COUNT = 2000
BYTES = 16_384_000


def read(batch: tlmem.Tensor) -> float:
    tlmem.acquire(batch, "reader")
    return float(batch.sum().item())


def main() -> None:
    total = 0.0
    for step in range(2000):
        with tlmem.scope("step"):
            batch = tlmem.full((16, 64), step)  # leaks here
            total += read(batch)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
