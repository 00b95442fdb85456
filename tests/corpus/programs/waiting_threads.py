import threading
import time
import numpy as np

never = threading.Event()
threading.stack_size(256 * 1024)


def serve(i):
    state = np.zeros(8_000) + i
    never.wait()
    state += 1


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.3:
    threading.Thread(target=serve, args=(i,), daemon=True).start()
    i += 1
    time.sleep(0.012)
print(threading.active_count() > 1)
