"""Scopes are left by with statements, the inner one first."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def begin() -> float:
    with tlmem.scope("inner"):
        return float(tlmem.full((16, 64), 1.0).sum().item())


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        with tlmem.scope("outer"):
            total += float(tlmem.full((16, 64), step).sum().item())
            total += begin()
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
