import time
from concurrent.futures import ThreadPoolExecutor
import numpy as np

failed = []


def task(i):
    work = np.zeros((256, 512))
    work[i % 256] = i
    time.sleep(0.003)
    if i % 4 == 1:
        raise RuntimeError(i)
    return float(work.sum())


with ThreadPoolExecutor(2) as ex:
    t0 = time.monotonic()
    i = 0
    while time.monotonic() - t0 < 3.8:
        fs = [ex.submit(task, i + k) for k in range(4)]
        i += 4
        for f in fs:
            if f.exception() is not None:
                failed.append(f)
        time.sleep(0.02)
print(len(failed) > 0)
