"""The generators of skipped-scope-exit are read to their ends, and the scopes in them end too."""

from collections.abc import Generator

from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"


def rows(step: int) -> Generator[tlmem.Tensor, None, None]:
    with tlmem.scope("rows"):
        table = tlmem.full((16, 64), step)
        for number in range(0, 16, 4):
            yield table[number]


def main() -> None:
    total = 0.0
    for step in long_enough(4_000):
        for row in rows(step):
            total += float(row.sum().item())
    print(f"{total:.3e}, {tlmem.scope_depth()} scopes entered")


if __name__ == "__main__":
    main()
