"""Arrays on both sides of the size from which glibc maps each block, which moves as they go."""

import time

import numpy as np


def main() -> None:
    kept = []
    for step in range(60):
        size = 60_000 + 25_000 * (step * 7 % 60)
        first, second = np.ones(size // 8), np.ones(size // 4)
        kept.append(first)
        if step % 3 == 0:
            kept.append(second)
        if step % 5 == 4:
            del kept[: len(kept) // 2]
        time.sleep(0.01)
    print(len(kept))


if __name__ == "__main__":
    main()
