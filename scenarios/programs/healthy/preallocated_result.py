"""One large result is made first and filled row by row: only resident memory grows."""

import numpy as np

OUTCOME = "stable"


def main() -> None:
    result = np.empty((4_000, 5_000))
    axis = np.linspace(0.0, 1.0, 5_000)
    for row in range(len(result)):
        result[row] = np.sin(axis * row)
    print(f"{result.sum():.6f}")


if __name__ == "__main__":
    main()
