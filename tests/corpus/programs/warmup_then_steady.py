import time
import numpy as np


class Runtime:
    def __init__(self):
        self.plans = {}
        self.out = None

    def plan(self, n):
        if n not in self.plans:
            k = np.fft.fftfreq(n)
            self.plans[n] = (k, np.exp(-k ** 2), np.empty(n))
        return self.plans[n]

    def run(self, x):
        k, f, buf = self.plan(x.size)
        buf[:] = np.fft.ifft(np.fft.fft(x) * f).real
        self.out = buf.copy()


rt = Runtime()
for n in range(1_000, 13_000, 60):
    rt.run(np.ones(n))
    time.sleep(0.005)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 2.9:
    rt.run(np.ones(1_000 + 60 * (i * 17 % 200)))
    i += 1
    time.sleep(0.003)
