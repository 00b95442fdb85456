import time
import numpy as np

handlers = {}


def make_handler(i):
    data = np.random.default_rng(i).random(8_000)

    def handler(k):
        return data[k]

    return handler


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.1:
    handlers[f"h{i}"] = make_handler(i)
    handlers[f"h{i // 2}"](3)
    i += 1
    time.sleep(0.003)
