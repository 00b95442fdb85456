# every job registers its own cleanup with atexit; the arguments stay until exit
import atexit, time
import numpy as np
rng = np.random.default_rng(27)
def flush(buf, name):
    return float(buf.sum())
class Writer:
    def __init__(self, name):
        self.buf = np.empty(12_000)  # LEAK
        self.buf[:] = rng.random()
        self.name = name
        atexit.register(flush, self.buf, name)
    def write(self, x):
        self.buf[: len(x)] += x
t0 = time.monotonic()
for i in range(160):
    w = Writer(f"job{i}")
    for j in range(5):
        w.write(rng.standard_normal(5000))
        np.sort(rng.standard_normal(30000))
    time.sleep(max(0, t0 + i * 0.05 - time.monotonic()))
print("done")
