"""A view of a frame's buffer is acquired and handed out; its memory ends with the function.

Fixed: The sum of a slot's buffer escapes from the frame, which is memory of its own.
"""

from tlmem.scenarios.programs.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def halves(step: int, keep: bool) -> tlmem.Tensor | None:
    with tlmem.frame(1, "halves"):  # outlives-frame here
        buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
        tlmem.multiply(tlmem.full((16, 64), step), 0.5, out=buffer)
        if not keep:
            return None
        if FIXED:
            return tlmem.escape(buffer.sum())
        tlmem.acquire(buffer, "results")
        return buffer


def main() -> None:
    kept, total = 0, 0.0
    for step in repeat(16_000, fixed=4_000):
        result = halves(step, step % 500 == 0)
        if result is not None:
            kept += 1
            total += float(result.item()) if FIXED else 0.0  # nobody can read what a frame freed
    print(f"{kept} results, {total:.3e}")


if __name__ == "__main__":
    main()
