"""What written-after-free stores too late is stored while the array lives."""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"
RECORD = "--zombie"


def main() -> None:
    total, signal = 0.0, np.ones(50_000)
    for step in long_enough(8000):
        np.multiply(signal, 0.9999, out=signal)
        result = np.full(100, signal[step % signal.size])
        address = result.ctypes.data
        total += float(result.sum())
        if step == 4000:
            ctypes.c_double.from_address(address).value = total
        del result
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
