import logging
import logging.handlers
import time
import numpy as np

log = logging.getLogger("calc")
log.propagate = False
log.setLevel(logging.INFO)
log.addHandler(logging.handlers.MemoryHandler(50, flushLevel=logging.ERROR, target=logging.NullHandler()))
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.0:
    a = np.arange(20_000) + i
    log.info("result %d %s", i, a)
    i += 1
    time.sleep(0.002)
