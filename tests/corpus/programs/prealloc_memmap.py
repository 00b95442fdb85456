import os
import tempfile
import time
import numpy as np

fd, path = tempfile.mkstemp()
os.close(fd)
mm = np.memmap(path, dtype=np.float64, mode="w+", shape=(400, 5_000))
try:
    for i in range(400):
        mm[i] = np.linspace(0, i, 5_000)
        time.sleep(0.006)
    mm.flush()
finally:
    del mm
    os.unlink(path)
