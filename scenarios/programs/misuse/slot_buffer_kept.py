"""The view of a slot's buffer is returned from the frame that the buffer ends with, and used.

Fixed: What escapes from the frame is a copy of the slot's buffer.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 48


@tlmem.framed(1)
def halves(step: int) -> tlmem.Tensor:
    buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
    tlmem.multiply(tlmem.full((16, 64), step), 0.5, out=buffer)
    return tlmem.escape(buffer.copy()) if FIXED else buffer


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(24_000, fixed=4_000):
        result = halves(step)
        if FIXED or step % 500 == 0:
            try:
                total += float(result.sum().item())  # use-after-free here
            except tlmem.UseAfterFree:
                refused += 1
    print(f"{total}, {refused} refused")


if __name__ == "__main__":
    main()
