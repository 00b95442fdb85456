"""The best result is remembered by name only; its scope frees it, and it is read afterwards.

Fixed: The best result is remembered as a number, which no scope frees.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 48


def main() -> None:
    best: tlmem.Tensor | float | None = None
    total, refused = 0.0, 0
    for step in repeat(24_000, fixed=4_000):
        with tlmem.scope("step"):
            loss = tlmem.full((16, 64), step).sum()
            if step % 500 == 0:
                best = float(loss.item()) if FIXED else loss
        if best is not None and step % 500 == 50:
            try:
                total += float(best)  # use-after-free here
            except tlmem.UseAfterFree:
                refused += 1
    print(f"{total}, {refused} refused")


if __name__ == "__main__":
    main()
