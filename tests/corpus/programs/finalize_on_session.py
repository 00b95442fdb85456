"""Scratch buffers are 'released' by weakref.finalize bound to a session that lives on."""
import sys
import time
import weakref

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Session:
    def __init__(self, name):
        self.name = name
        self.jobs = 0


def wipe(buffer):
    buffer.fill(0)


def scratch(session, n):
    buf = np.empty(n, dtype=np.int64)
    weakref.finalize(session, wipe, buf)
    return buf


def sort_job(session, n):
    work = scratch(session, n)
    work[:] = (np.arange(n) * 7919) % n
    work.sort()
    session.jobs += 1
    return int(work[n // 2])


sessions = [Session("a"), Session("b")]
stop = time.monotonic() + T
i = acc = 0
while time.monotonic() < stop:
    acc += sort_job(sessions[i % 2], 500 + 250 * (i % 5))
    i += 1
    time.sleep(0.007)
print("jobs", i, "acc", acc)
