"""Handle requests that each log through their own named logger and buffered handler."""
import logging
import logging.handlers
import random
import time

rng = random.Random(47)
sink = logging.StreamHandler(open("/dev/null", "w"))
root = logging.getLogger("app")
root.setLevel(logging.INFO)
root.propagate = False


def handle(n):
    log = logging.getLogger(f"app.request-{n}-{rng.getrandbits(48):x}")
    log.propagate = False
    handler = logging.handlers.MemoryHandler(capacity=50, flushLevel=logging.ERROR, target=sink)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    log.addHandler(handler)
    log.info("start %d", n)
    total = sum(rng.randrange(100) for _ in range(40))
    if total > 2200:
        log.error("overload %d", total)
    log.info("done %d", total)
    handler.flush()
    return total


def main():
    total = n = 0
    for tick in range(170):
        for _ in range(30):
            n += 1
            total += handle(n)
        time.sleep(0.039)
    print(n, total)


main()
