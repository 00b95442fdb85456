"""The engine of wrong-allocator gives each block back to the allocator that it came from."""

from tlmem.scenarios.harness.switch import long_enough
from tlmem.scenarios.programs.misuse.wrong_allocator import Engine

OUTCOME = "stable"


def main() -> None:
    engine, total = Engine(), 0
    for _ in long_enough(60_000):
        block = engine.alloc(256, "slab")
        total += block % 16
        engine.free(block, "slab")
    print(total)


if __name__ == "__main__":
    main()
