"""Generators are kept half read, and with them the scope that each of them has entered."""

from collections.abc import Generator

import tlmem

OUTCOME = "leak"
HELD_BY = "scope 'rows'"
CLASS = "scope-not-left"
COUNT = 1500
BYTES = 12_288_000


def rows(step: int) -> Generator[tlmem.Tensor, None, None]:
    with tlmem.scope("rows"):
        table = tlmem.full((16, 64), step)  # leaks here
        for number in range(16):
            yield table[number]


def main() -> None:
    total, unread = 0.0, []
    for step in range(1500):
        reader = rows(step)
        total += float(next(reader).sum().item())
        unread.append(reader)
    print(f"{total:.3e}, {tlmem.scope_depth()} scopes entered")
    while unread:
        unread.pop().close()


if __name__ == "__main__":
    main()
