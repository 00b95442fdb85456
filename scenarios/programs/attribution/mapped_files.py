"""Memory mapped by the program itself: without a file, shared and private, and with one."""

import mmap
import tempfile

import numpy as np


def main() -> None:
    kept: list[object] = []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(60):
            private = mmap.mmap(-1, 600_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            shared = mmap.mmap(-1, 500_000)
            private[:] = shared[:100_000] * 6
            shared[:400_000] = private[:400_000]
            array = np.memmap(f"{folder}/{step}", np.float64, "w+", shape=(80_000,))
            array[:] = np.sqrt(np.arange(80_000.0))
            kept += [private, shared, array]
            for _ in range(300):
                array[:100] += np.sqrt(np.arange(20_000.0))[-100:]
    print(len(kept))


if __name__ == "__main__":
    main()
