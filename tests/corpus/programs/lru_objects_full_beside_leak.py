"""An lru_cache of limited size is full after a moment; beside it a log of dicts grows for ever."""
import functools
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
LOG = []


@functools.lru_cache(maxsize=2_000)
def rate(customer):
    return {"customer": customer, "rate": customer % 7 / 10}


def serve(rnd, orders):
    customer = rnd.randrange(50_000)
    total = float(orders.sum()) * (1 - rate(customer)["rate"])
    LOG.append({"customer": customer, "total": total, "note": f"order {len(LOG)}"})
    return total


def main():
    rnd, rng = random.Random(5), np.random.default_rng(5)
    start, n, total = time.perf_counter(), 0, 0.0
    while time.perf_counter() - start < T:
        total += serve(rnd, rng.random(50))
        n += 1
        if n % 20 == 0:
            time.sleep(0.002)
    print("served", n > 0, total > 0)


main()
