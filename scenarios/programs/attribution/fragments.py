"""Small blocks of NumPy, most of them freed again, so that free memory lies between survivors."""

import numpy as np


def main() -> None:
    kept = []
    for _ in range(250):
        blocks = [np.ones(250) for _ in range(600)]
        kept.append(blocks[::15])
        del blocks
        kept.append([np.ones(700) for _ in range(20)])
        np.sqrt(np.arange(50_000.0)).sum()
    print(sum(map(len, kept)))


if __name__ == "__main__":
    main()
