import time
import numpy as np

pending = []
sent = 0


def flush():
    global sent
    sent += sum(p.nbytes for p in pending)
    del pending[:]


t0 = time.monotonic()
while time.monotonic() - t0 < 2.8:
    pending.append(np.ones(15_000))
    if len(pending) == 10:
        flush()
    time.sleep(0.001)
print(sent > 0)
