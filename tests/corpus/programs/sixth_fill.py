# simulation writes its frames into one pre-allocated result, saved at the end: resident memory grows evenly
import time, tempfile, os
import numpy as np
rng = np.random.default_rng(8)
STEPS = 800
frames = np.zeros((STEPS, 100, 200))
u = rng.standard_normal((100, 200)); t0 = time.monotonic()
for i in range(STEPS):
    u += 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
    frames[i] = u
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
p = os.path.join(tempfile.mkdtemp(), "f.npy"); np.save(p, frames[::4]); os.remove(p)
print(frames.std())
