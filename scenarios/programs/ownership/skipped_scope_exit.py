"""Generators are kept half read, and with them the scope that each of them has entered.

Fixed: The generators of skipped-scope-exit are read to their ends, and the scopes in them end too.
"""

from collections.abc import Generator

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "leak"
HELD_BY = "scope 'rows'"
CLASS = "scope-not-left"
COUNT = 1500
BYTES = 12_288_000


def rows(step: int) -> Generator[tlmem.Tensor, None, None]:
    with tlmem.scope("rows"):
        table = tlmem.full((16, 64), step)  # leaks here
        for number in range(0, 16, 4):
            yield table[number]


def main() -> None:
    total, unread = 0.0, []
    for step in repeat(1500, fixed=4_000):
        reader = rows(step)
        total += float(next(reader).sum().item())
        if FIXED:
            total += sum(float(row.sum().item()) for row in reader)
        else:
            unread.append(reader)
    print(f"{total:.3e}, {tlmem.scope_depth()} scopes entered")
    while unread:
        unread.pop().close()


if __name__ == "__main__":
    main()
