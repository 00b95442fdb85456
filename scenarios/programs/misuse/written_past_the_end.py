"""A kernel in C is told one row too many and writes behind the array: seen in quarantine.

Fixed: The kernel of written-past-the-end is told how many bytes the array has.
"""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "stable"
RECORD = "--zombie"
EXIT = "SIGSEGV"
COUNT = 1
ROWS, BYTES_OF_A_ROW = 64, 4096


def clear(image: np.ndarray, rows: int) -> None:
    ctypes.memset(image.ctypes.data, 0, rows * BYTES_OF_A_ROW)  # past-the-end here


def main() -> None:
    total = 0.0
    for step in range(4000):
        image = np.full((ROWS, BYTES_OF_A_ROW), step % 256, np.uint8)
        total += float(image[0].sum())
        clear(image, ROWS if FIXED or step < 3999 else ROWS + 1)
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
