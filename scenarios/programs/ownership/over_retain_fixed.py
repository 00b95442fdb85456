"""The reader of over-retain, with a release for each acquire, also when reading fails."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def read(batch: tlmem.Tensor) -> float:
    tlmem.acquire(batch, "reader")
    try:
        return float(batch.sum().item())
    finally:
        tlmem.release(batch, "reader")


def main() -> None:
    total = 0.0
    for step in long_enough(6_000):
        with tlmem.scope("step"):
            batch = tlmem.full((16, 64), step)
            total += read(batch)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
