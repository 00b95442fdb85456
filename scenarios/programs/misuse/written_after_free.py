"""An address outlives its array, and a number is stored there: found when it leaves quarantine.

Fixed: What written-after-free stores too late is stored while the array lives.
"""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "stable"
RECORD = "--zombie"
COUNT = 1


def main() -> None:
    total, signal = 0.0, np.ones(50_000)
    for step in repeat(16_000, fixed=8_000):
        np.multiply(signal, 0.9999, out=signal)
        result = np.full(100, signal[step % signal.size])
        address = result.ctypes.data
        total += float(result.sum())
        if FIXED and step == 4000:
            ctypes.c_double.from_address(address).value = total
        del result  # written-after-free here
        if not FIXED and step == 4000:
            ctypes.c_double.from_address(address).value = total
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
