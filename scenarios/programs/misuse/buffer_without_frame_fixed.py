"""The function that needs a buffer of a frame enters one itself."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def doubled(step: int) -> float:
    with tlmem.frame(1, "doubled"):
        buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
        tlmem.multiply(tlmem.full((16, 64), step), 2.0, out=buffer)
        return float(buffer.sum().item())


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        total += doubled(step)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
