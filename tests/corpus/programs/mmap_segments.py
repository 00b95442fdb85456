import mmap
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
segments = []


def shared_segment(payload):
    m = mmap.mmap(-1, 128 * 1024)
    m.write(payload * (120_000 // len(payload)))
    segments.append(m)
    return m


x = 0
for i in range(int(T * 70)):
    m = shared_segment(np.arange(100 + i % 50, dtype=np.int32).tobytes())
    x += m[17]
    time.sleep(0.012)
print(len(segments), x)
