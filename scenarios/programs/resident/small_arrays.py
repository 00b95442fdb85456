"""Arrays of 1 to 60 kB: all from the heap, more and more of them."""

import time

import numpy as np


def main() -> None:
    chance = np.random.default_rng(1)
    kept = []
    for _ in range(40):
        kept += [np.ones(int(n)) for n in chance.integers(125, 7_500, 60)]
        time.sleep(0.01)
    print(len(kept))


if __name__ == "__main__":
    main()
