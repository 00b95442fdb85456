import mmap
import os
import sys
import tempfile
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
with tempfile.TemporaryFile() as f:
    np.arange(400_000, dtype=np.int32).tofile(f)
    f.flush()
    size = os.fstat(f.fileno()).st_size
    s = 0
    for i in range(int(T * 150)):
        off = i % 6 * mmap.ALLOCATIONGRANULARITY * 40
        n = min(mmap.ALLOCATIONGRANULARITY * 60, size - off)
        with mmap.mmap(f.fileno(), n, offset=off, access=mmap.ACCESS_READ) as m:
            a = np.frombuffer(m, dtype=np.int32)
            s += int(a[::100].sum() % 1000)
            del a
        time.sleep(0.006)
print(s)
