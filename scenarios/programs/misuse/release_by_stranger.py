"""An accessor hands out a cached tensor without a count of its own; the caller releases it.

Fixed: The caller of the cache takes a count of its own and releases that.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 48


class Cache:
    """Holds one tensor for each key; ``get`` lends, it gives nothing away."""

    def __init__(self) -> None:
        self.kept: dict[int, tlmem.Tensor] = {}

    def get(self, key: int) -> tlmem.Tensor:
        if key not in self.kept:
            self.kept[key] = tlmem.full((16, 64), key)
        return self.kept[key]


def main() -> None:
    cache, total, refused = Cache(), 0.0, 0
    for step in repeat(96_000, fixed=4_000):
        table = cache.get(step % 10)
        if FIXED:
            tlmem.acquire(table, "caller")
        total += float(table.sum().item())
        if FIXED or step % 2000 == 0:
            try:
                tlmem.release(table, "caller")  # over-release here
            except tlmem.NotAHolder:
                refused += 1
    print(f"{total:.3e}, {refused} refused")


if __name__ == "__main__":
    main()
