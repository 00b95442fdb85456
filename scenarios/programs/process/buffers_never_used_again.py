"""A device keeps every buffer that is freed and hands none out again: what it keeps only grows."""

import tlmem

OUTCOME = "driver"
CLASS = "pool-never-hits"
COUNT = 16_000


def main() -> None:
    tlmem.device("cpu").policy("persistent")
    total = 0.0
    for step in range(8_000):
        with tlmem.scope("step"):
            batch = tlmem.full((64, 64), step)
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
