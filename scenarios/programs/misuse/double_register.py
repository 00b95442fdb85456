"""A tensor is registered where it is made and once more by a wrapper around it.

Fixed: A tensor is registered where it is made, and its wrapper takes it as it is.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 24_000


class Wrapped:
    """Registers what it wraps, as if nobody had; when fixed, it leaves that to the scope."""

    def __init__(self, tensor: tlmem.Tensor) -> None:
        self.tensor = tensor
        if not FIXED:
            tlmem.register(tensor)  # double-register here


def main() -> None:
    total = 0.0
    for step in repeat(24_000, fixed=4_000):
        with tlmem.scope("step"):
            batch = tlmem.full((16, 64), step)
            total += float(Wrapped(batch).tensor.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
