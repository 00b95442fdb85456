"""Every tensor is freed, yet the driver of its device keeps the memory: resident memory grows."""

import tlmem

OUTCOME = "driver"


def main() -> None:
    tlmem.device("sim-metal").policy("direct")
    total = 0.0
    for step in range(12_000):
        with tlmem.scope("step"):
            batch = tlmem.full((64, 64), step, device="sim-metal")
            total += float(batch.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
