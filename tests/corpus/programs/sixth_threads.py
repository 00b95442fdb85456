# one helper thread per request; those of cancelled requests wait for ever with their thread-local scratch
import threading, queue, time
import numpy as np
rng = np.random.default_rng(28)
tls = threading.local()
def scratch():
    if not hasattr(tls, "buf"):
        tls.buf = np.ones(20_000)  # LEAK
    return tls.buf
def helper(q, out):
    s = scratch()
    while True:
        item = q.get()
        if item is None: return
        s[: len(item)] += item
        out.append(float(s.sum()))
t0 = time.monotonic(); res = 0.0
for i in range(400):
    q = queue.Queue(); out = []
    th = threading.Thread(target=helper, args=(q, out), daemon=True); th.start()
    q.put(rng.standard_normal(10_000))
    if i % 7 != 3:
        q.put(None); th.join(); res += out[0]
    time.sleep(max(0, t0 + i * 0.02 - time.monotonic()))
print(res, threading.active_count())
