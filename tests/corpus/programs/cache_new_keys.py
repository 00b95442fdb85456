import time
import numpy as np

memo = {}


def spectrum(stamp, n=4_096):
    key = (stamp, n)
    if key not in memo:
        memo[key] = np.fft.rfft(np.sin(np.arange(n) * stamp))
    return memo[key]


t0 = time.monotonic()
k = 0.0
while time.monotonic() - t0 < 3.0:
    k += 0.001
    spectrum(k)[0].real
    time.sleep(0.002)
