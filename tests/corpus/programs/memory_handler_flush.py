import io
import logging
import logging.handlers
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


np.set_printoptions(threshold=10)


class Count(logging.StreamHandler):
    n = 0

    def emit(self, record):
        Count.n += 1
        self.stream.seek(0)
        self.stream.truncate()
        super().emit(record)


target = Count(io.StringIO())
mh = logging.handlers.MemoryHandler(120, flushLevel=logging.ERROR, target=target)
log = logging.getLogger("solver")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(mh)
x = np.ones(400)
for i in range(int(T * 250)):
    r = np.sin(x * i)
    log.debug("residual %s", r)
    if i % 300 == 299:
        log.error("restart at %d", i)
    x = 0.5 * (x + r / (np.abs(r).max() + 1e-9))
    time.sleep(0.0034)
print(Count.n > 0)
