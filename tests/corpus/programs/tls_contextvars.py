import contextvars
import time
import numpy as np

current = contextvars.ContextVar("current", default=None)


def handle(i):
    tok = current.set(np.random.default_rng(i).random(20_000))
    try:
        return inner()
    finally:
        current.reset(tok)


def inner():
    return float(current.get().max())


t0 = time.monotonic()
i = 0
s = 0.0
while time.monotonic() - t0 < 2.8:
    s += contextvars.copy_context().run(handle, i)
    i += 1
    time.sleep(0.002)
print(s > 0)
