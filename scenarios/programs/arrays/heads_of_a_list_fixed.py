"""Of every table the first rows are kept in a list of the module, as copies, the last twenty."""

import numpy as np

OUTCOME = "stable"

heads: list[np.ndarray] = []


def table(number: int) -> np.ndarray:
    chance = np.random.default_rng(number)
    return np.sort(chance.random((20_000, 5)), axis=0)


def main() -> None:
    for number in range(300):
        heads.append(table(number)[:4].copy())
        del heads[:-20]
    print(f"{len(heads)} heads, {sum(head.nbytes for head in heads)} bytes of them are used")


if __name__ == "__main__":
    main()
