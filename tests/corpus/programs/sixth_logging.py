# MemoryHandler with a flush level that is never reached: records keep their args (arrays)
import logging, logging.handlers, time
import numpy as np
rng = np.random.default_rng(26)
log = logging.getLogger("train"); log.setLevel(logging.DEBUG); log.propagate = False
target = logging.NullHandler()
log.addHandler(logging.handlers.MemoryHandler(10**6, flushLevel=logging.CRITICAL, target=target))
w = rng.standard_normal((60, 60)) * 0.1
t0 = time.monotonic()
for step in range(800):
    x = rng.standard_normal((256, 60))
    h = np.tanh(x @ w)
    grad = x.T @ (h - 0.1) / 256  # LEAK
    w -= 0.01 * grad
    if step % 1 == 0:
        log.debug("step %d grad %s", step, grad)
    time.sleep(max(0, t0 + step * 0.01 - time.monotonic()))
print(w.std())
