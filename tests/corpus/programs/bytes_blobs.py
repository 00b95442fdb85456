import time
import zlib
import numpy as np

blobs = {}
end = time.monotonic() + 3.7
i = 0
while time.monotonic() < end:
    a = np.random.default_rng(i).random(4_000)
    blobs[i] = zlib.compress(a.tobytes(), 1)
    i += 1
    time.sleep(0.003)
print(len(blobs) > 0)
