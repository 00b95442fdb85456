"""What escapes from the frame is a copy of the slot's buffer."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


@tlmem.framed(1)
def halves(step: int) -> tlmem.Tensor:
    buffer = tlmem.get_buffer(0, 4096).tensor((16, 64))
    tlmem.multiply(tlmem.full((16, 64), step), 0.5, out=buffer)
    return tlmem.escape(buffer.copy())


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        total += float(halves(step).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
