import mmap
import os
import tempfile
import time
import numpy as np

f = tempfile.TemporaryFile()
f.write(os.urandom(1 << 20) * 8)
f.flush()
t0 = time.monotonic()
i = 0
s = 0
while time.monotonic() - t0 < 2.8:
    with mmap.mmap(f.fileno(), 1 << 20, access=mmap.ACCESS_READ, offset=(i % 8) << 20) as m:
        a = np.frombuffer(m, np.uint8)
        s += int(a[::512].sum())
        b = a[:20_000].astype(float)
        del a
    s += int(b[0])
    i += 1
    time.sleep(0.004)
f.close()
print(s > 0)
