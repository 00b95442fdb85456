"""A function promotes what it returns, its caller registers nothing: every result floats for ever.

The tensors die with no variable: a promoted one waits to be registered.

Fixed: The caller of forgotten-promote registers what it was handed: the count goes to its own
scope.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "nobody"
CLASS = "floating"
COUNT = 2000
BYTES = 8_192_000


def gradient(step: int) -> tlmem.Tensor:
    with tlmem.scope("gradient"):
        noise = tlmem.full((16, 64), step)
        result = noise * 0.5  # leaks here
        return tlmem.promote(result)


def main() -> None:
    total = 0.0
    for step in repeat(2000, fixed=6_000):
        with tlmem.scope("step"):
            result = gradient(step)
            if FIXED:
                tlmem.register(result)
            total += float(result.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
