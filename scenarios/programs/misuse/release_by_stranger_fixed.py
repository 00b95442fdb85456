"""The caller of the cache takes a count of its own and releases that."""

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


class Cache:
    """Holds one tensor for each key; ``get`` lends, it gives nothing away."""

    def __init__(self) -> None:
        self.kept: dict[int, tlmem.Tensor] = {}

    def get(self, key: int) -> tlmem.Tensor:
        if key not in self.kept:
            self.kept[key] = tlmem.full((16, 64), key)
        return self.kept[key]


def main() -> None:
    cache, total = Cache(), 0.0
    for step in long_enough(24_000):
        table = cache.get(step % 10)
        tlmem.acquire(table, "caller")
        total += float(table.sum().item())
        tlmem.release(table, "caller")
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
