import logging
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Keep(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.records = []

    def emit(self, record):
        self.records.append(record)


log = logging.getLogger("fit")
log.setLevel(logging.DEBUG)
log.propagate = False
keep = Keep()
log.addHandler(keep)
w = np.zeros(250)
for i in range(int(T * 140)):
    grad = np.random.default_rng(i).standard_normal(250)
    w -= 0.01 * grad
    log.debug("step %d grad %s", i, grad)
    if i % 20 == 0:
        log.info("norm %.4f", float(np.linalg.norm(w)))
    time.sleep(0.0063)
print(len(keep.records), round(float(np.linalg.norm(w)), 5))
