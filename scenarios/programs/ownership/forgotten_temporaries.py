"""One scope around the whole training: the temporary of each expression lives until its end.

Fixed: The expression of forgotten-temporaries in a scope for each step, which ends its temporary.
"""

from contextlib import nullcontext

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "scope 'training'"
CLASS = "scope-not-left"
COUNT = 1500
BYTES = 6_144_000


def main() -> None:
    weight, target = tlmem.ones((16, 64)), tlmem.zeros((16, 64))
    with tlmem.scope("training"):
        for _ in repeat(1500, fixed=4_000):
            with tlmem.scope("step") if FIXED else nullcontext():
                tlmem.multiply(weight, 0.999, out=weight)
                tlmem.subtract(target, 1.0 - weight, out=target)  # leaks here
    print(target.sum().item())


if __name__ == "__main__":
    main()
