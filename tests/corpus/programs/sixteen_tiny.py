import time
import numpy as np

log = []
keep = log.append
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    keep(np.arange(8.0))
    keep(np.zeros(10))
    keep(np.ones(12))
    keep(np.full(14, i))
    keep(np.array([i, i + 1, i + 2, i + 3.0]))
    keep(np.eye(4))
    keep(np.arange(16) * i)
    keep(np.zeros(18, np.float32))
    keep(np.ones((3, 5)))
    keep(np.linspace(0, 1, 20))
    keep(np.array([[i, 0.0], [0.0, i]]))
    keep(np.full((2, 6), 1.5))
    keep(np.arange(25)[::-1].copy())
    keep(np.cos(np.arange(9.0)))
    keep(np.maximum(np.arange(11.0), 4))
    keep(np.zeros(22, np.int32))
    i += 1
    time.sleep(0.0005)
print(len(log) > 0)
