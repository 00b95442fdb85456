"""Each request runs in its own contextvars context; the audit trail keeps the contexts."""
import contextvars
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
current_user = contextvars.ContextVar("current_user")
current_body = contextvars.ContextVar("current_body")
audit = []


def parse(n):
    return np.linspace(0.0, 1.0, 700 + n % 400)


def handle(n):
    current_user.set("user%d" % (n % 23))
    current_body.set(parse(n))
    return respond()


def respond():
    body = current_body.get()
    weights = np.hanning(len(body))
    return float((body * weights).sum())


def serve(n):
    ctx = contextvars.copy_context()
    answer = ctx.run(handle, n)
    if n % 2 == 0:
        audit.append((time.time(), ctx))
    return answer


stop = time.monotonic() + T
n, total = 0, 0.0
while time.monotonic() < stop:
    total += serve(n)
    n += 1
    time.sleep(0.004)
print("requests", n, "total %.2f" % total)
