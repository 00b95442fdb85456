"""A frame is left by hand while that of a function it called is still entered.

Fixed: Frames are left by with statements, that of the called function first.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def begin() -> float:
    tlmem.frame(1, "inner").__enter__()
    return float(tlmem.get_buffer(0, 4096).nbytes)


def begin_fixed() -> float:
    with tlmem.frame(1, "inner"):
        return float(tlmem.get_buffer(0, 4096).nbytes)


def one_step(step: int) -> tuple[float, int]:
    """The sum of a batch, and how often leaving the outer frame was refused."""
    outer = tlmem.frame(1, "outer")
    outer.__enter__()
    total = float(tlmem.full((16, 64), step).sum().item())
    if step % 500 == 0:
        total += begin()
    try:
        outer.__exit__(None, None, None)  # unbalanced-frame here
    except tlmem.UnbalancedScope:
        return total, 1
    return total, 0


def one_step_fixed(step: int) -> tuple[float, int]:
    with tlmem.frame(1, "outer"):
        return float(tlmem.full((16, 64), step).sum().item()) + begin_fixed(), 0


def main() -> None:
    total, refused = 0.0, 0
    function = one_step_fixed if FIXED else one_step
    for step in repeat(16_000, fixed=4_000):
        result, times = function(step)
        total, refused = total + result, refused + times
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
