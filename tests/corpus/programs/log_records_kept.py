import logging
import time
import numpy as np


class ListHandler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


h = ListHandler()
log = logging.getLogger("calc")
log.propagate = False
log.setLevel(logging.INFO)
log.addHandler(h)
end = time.monotonic() + 3.4
i = 0
while time.monotonic() < end:
    a = np.cos(np.arange(8_000) + i)
    log.info("step %d %s", i, a)
    i += 1
    time.sleep(0.004)
print(len(h.records) > 0)
