"""The first rows of every table are kept in a list of the module, as views of whole tables.

Fixed: Of every table the first rows are kept in a list of the module, as copies, the last twenty.
"""

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "view-pins-base"
HELD_BY = "list 'heads' (module __main__) through the view's base"
COUNT = 300

heads: list[np.ndarray] = []


def table(number: int) -> np.ndarray:
    chance = np.random.default_rng(number)
    return np.sort(chance.random((20_000, 5)), axis=0)  # leaks here


def main() -> None:
    for number in range(300):
        rows = table(number)
        if FIXED:
            heads.append(rows[:4].copy())
            del heads[:-20]
        else:
            heads.append(rows[:4])
    print(f"{len(heads)} heads, {sum(head.nbytes for head in heads)} bytes of them are used")


if __name__ == "__main__":
    main()
