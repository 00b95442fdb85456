"""Who was handed the tensor frees it, and nobody else does."""

import tlmem

OUTCOME = "stable"


def consume(batch: tlmem.Tensor) -> float:
    total = float(batch.sum().item())
    batch.free()
    return total


def main() -> None:
    total = 0.0
    for step in range(16_000):
        total += consume(tlmem.full((16, 64), step))
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
