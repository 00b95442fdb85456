"""The sum of a slot's buffer escapes from the frame, which is memory of its own."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def halves(step: int, keep: bool) -> tlmem.Tensor | None:
    with tlmem.frame(1, "halves"):
        buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
        tlmem.multiply(tlmem.full((16, 64), step), 0.5, out=buffer)
        return tlmem.escape(buffer.sum()) if keep else None


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        result = halves(step, step % 500 == 0)
        total += 0.0 if result is None else float(result.item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
