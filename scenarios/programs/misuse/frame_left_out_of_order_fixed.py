"""Frames are left by with statements, that of the called function first."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def begin() -> float:
    with tlmem.frame(1, "inner"):
        return float(tlmem.get_buffer(0, 4096).nbytes)


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        with tlmem.frame(1, "outer"):
            total += float(tlmem.full((16, 64), step).sum().item())
            total += begin()
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
