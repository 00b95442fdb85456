import time
import numpy as np

clouds = [np.random.default_rng(k).random((400, 3)) for k in range(400)]
t0 = time.monotonic()
step = 0
while time.monotonic() - t0 < 3.3:
    k = step % len(clouds)
    clouds[k] = clouds[k] + 0.01
    if step % 4 == 0 and len(clouds) > 20:
        clouds.pop()
    step += 1
    time.sleep(0.0015)
print(len(clouds) >= 20)
