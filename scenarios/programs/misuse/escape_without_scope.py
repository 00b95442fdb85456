"""A function lets its result escape its scope, and some callers have none entered.

Fixed: The result escapes only where a scope is entered that it can leave.
"""

from contextlib import nullcontext

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 32


def norm(step: int) -> tlmem.Tensor:
    with tlmem.scope("norm") if FIXED else nullcontext():
        return tlmem.escape(tlmem.full((16, 64), step) * 2.0)  # not-in-scope here


def main() -> None:
    total, refused = 0.0, 0
    for step in repeat(16_000, fixed=4_000):
        with tlmem.scope("step"):
            result = norm(step)
        total += float(result.sum().item())
        if step % 500 == 0:
            try:
                norm(step)
            except tlmem.NotInScope:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
