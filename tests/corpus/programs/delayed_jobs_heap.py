"""Job scheduler: a heap of jobs with due times up to 0.8 s ahead, big and small payloads."""
import heapq
import itertools
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(8)
order = itertools.count()
heap = []


def submit(delay, payload):
    heapq.heappush(heap, (time.monotonic() + delay, next(order), payload))


def run_due():
    done = 0.0
    while heap and heap[0][0] <= time.monotonic():
        _, _, payload = heapq.heappop(heap)
        done += float(payload.sum())
    return done


stop = time.monotonic() + T
total = jobs = 0
while time.monotonic() < stop:
    size = int(10 ** rng.uniform(1.2, 4.3))
    submit(rng.choice((0.05, 0.2, 0.8)) * rng.random(), np.ones(size))
    total += run_due()
    jobs += 1
    time.sleep(0.0025)
print("jobs", jobs, "waiting", len(heap), "work", total)
