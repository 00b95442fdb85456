# audit trail as a bytearray that is only appended to; a checkpoint every second copies the last part only
import time
import numpy as np
rng = np.random.default_rng(35)
trail = bytearray(); t0 = time.monotonic(); s = 0
for i in range(800):
    x = rng.standard_normal(20000); s += x.sum()
    trail += x[:1000].tobytes()  # LEAK
    if i % 100 == 99: chk = bytes(trail[-8000:])
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(s, len(trail))
