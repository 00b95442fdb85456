"""A function asks for a buffer of its frame, and is also called where no frame is entered.

Fixed: The function that needs a buffer of a frame enters one itself.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def doubled(step: int) -> float:
    buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))  # no-frame here
    tlmem.multiply(tlmem.full((16, 64), step), 2.0, out=buffer)
    return float(buffer.sum().item())


doubled_fixed = tlmem.framed(1)(doubled)


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(16_000, fixed=4_000):
        if FIXED:
            total += doubled_fixed(step)
            continue
        with tlmem.scope("step"), tlmem.frame(1, "doubled"):
            total += doubled(step)
        if step % 500 == 0:
            try:
                total += doubled(step)
            except tlmem.NoFrame:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
