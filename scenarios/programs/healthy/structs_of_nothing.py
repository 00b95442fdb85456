"""Structs without fields are made, passed on and let go: there is nothing of them to own (B21)."""

import tlmem

OUTCOME = "stable"


def settle(marker: tlmem.Struct, step: int) -> int:
    """Has the struct as a value, as any other."""
    return step if marker is not None else 0


def main() -> None:
    total = 0
    for step in range(30_000):
        with tlmem.scope("step"):
            marker = tlmem.struct({})
            total += settle(marker, step)
    print(total)


if __name__ == "__main__":
    main()
