"""A scope is left by hand while one inside it, which a helper entered, is still entered.

Fixed: Scopes are left by with statements, the inner one first.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def begin() -> float:
    tlmem.scope("inner").__enter__()
    return float(tlmem.full((16, 64), 1.0).sum().item())


def begin_fixed() -> float:
    with tlmem.scope("inner"):
        return float(tlmem.full((16, 64), 1.0).sum().item())


def one_step(step: int) -> tuple[float, int]:
    """The sum of a batch, and how often leaving the outer scope was refused."""
    outer = tlmem.scope("outer")
    outer.__enter__()
    total = float(tlmem.full((16, 64), step).sum().item())
    if step % 500 == 0:
        total += begin()
    try:
        outer.__exit__(None, None, None)  # unbalanced-scope here
    except tlmem.UnbalancedScope:
        return total, 1
    return total, 0


def one_step_fixed(step: int) -> tuple[float, int]:
    with tlmem.scope("outer"):
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
