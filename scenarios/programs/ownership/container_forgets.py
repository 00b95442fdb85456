"""A container of its own kind releases its keys at the scope's end and forgets its values.

Fixed: The container of container-forgets releases its values with its keys.
"""

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "kv cache"
CLASS = "over-retained"
COUNT = 1500
BYTES = 12_288_000


class KeyValueCache:
    """What a scope needs to own it, and ``free``, which it calls at its end."""

    escaped = False

    def __init__(self, step: int) -> None:
        self.handle = object()
        self.keys = tlmem.acquire(tlmem.full((16, 64), step), "kv cache")
        self.values = tlmem.acquire(tlmem.full((16, 64), step), "kv cache")  # leaks here

    def mark_escaped(self) -> None:
        self.escaped = True

    def free(self) -> None:
        tlmem.release(self.keys, "kv cache")
        if FIXED:
            tlmem.release(self.values, "kv cache")


def main() -> None:
    total = 0.0
    for step in repeat(1500, fixed=5000):
        with tlmem.scope("step"):
            cache = tlmem.register(KeyValueCache(step))
            total += float((cache.keys * cache.values).sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
