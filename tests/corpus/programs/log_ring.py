"""Log requests through the logging package into a ring buffer that dumps its tail on errors."""
import io
import logging
import random
import time
from collections import deque

rng = random.Random(55)


class RingHandler(logging.Handler):
    def __init__(self, capacity):
        super().__init__()
        self.ring = deque(maxlen=capacity)

    def emit(self, record):
        self.ring.append(record)

    def tail(self, n):
        return [self.format(r) for r in list(self.ring)[-n:]]


def main():
    ring = RingHandler(6000)
    ring.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    log = logging.getLogger("service")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(ring)
    dumped = 0
    for tick in range(170):
        for _ in range(85):
            path = f"/items/{rng.randrange(10**6)}?trace={rng.getrandbits(64):x}"
            log.info("GET %s -> %d in %.2f ms", path, rng.choice((200, 304, 404)), rng.random() * 50,
                     extra={"headers": {"ua": "client/" + path, "len": str(rng.random())}})
        if tick % 8 == 7:
            try:
                {}["missing"]
            except KeyError:
                log.error("lookup failed", exc_info=True)
            out = io.StringIO()
            for line in ring.tail(100):
                out.write(line + "\n")
            dumped += out.tell() > 0
        time.sleep(0.038)
    print("dumps", dumped, "kept", len(ring.ring))


main()
