"""An address outlives its array, and a number is stored there: found when it leaves quarantine."""

import ctypes

import numpy as np

OUTCOME = "stable"
RECORD = "--zombie"
COUNT = 1


def main() -> None:
    total, signal = 0.0, np.ones(50_000)
    for step in range(16_000):
        np.multiply(signal, 0.9999, out=signal)
        result = np.full(100, signal[step])
        address = result.ctypes.data
        total += float(result.sum())
        del result  # written-after-free here
        if step == 4000:
            ctypes.c_double.from_address(address).value = total
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
