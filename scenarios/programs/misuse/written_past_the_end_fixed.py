"""The kernel of written-past-the-end is told how many bytes the array has."""

import ctypes

import numpy as np

OUTCOME = "stable"
RECORD = "--zombie"
ROWS, BYTES_OF_A_ROW = 64, 4096


def clear(image: np.ndarray) -> None:
    ctypes.memset(image.ctypes.data, 0, image.nbytes)


def main() -> None:
    total = 0.0
    for step in range(4000):
        image = np.full((ROWS, BYTES_OF_A_ROW), step % 256, np.uint8)
        total += float(image[0].sum())
        clear(image)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
