"""Drive a discrete-event scheduler whose heap always holds the same number of timers."""
import heapq
import itertools
import random
import time

rng = random.Random(1)
TIMERS = 25000
counter = itertools.count()


class Job:
    __slots__ = ("name", "period", "runs", "history")

    def __init__(self, i):
        self.name = f"job-{i}"
        self.period = rng.uniform(2, 25)
        self.runs = 0
        self.history = (0.0, 0.0, 0.0)

    def fire(self, now):
        self.runs += 1
        self.history = self.history[1:] + (now,)
        jitter = rng.uniform(0.9, 1.1)
        return now + self.period * jitter


def schedule(heap, when, job):
    heapq.heappush(heap, (when, next(counter), lambda now, j=job: j.fire(now), job))


def main():
    heap = []
    for i in range(TIMERS):
        job = Job(i)
        schedule(heap, rng.uniform(0, job.period), job)
    now = 0.0
    fired = 0
    for tick in range(150):
        now += 0.5
        while heap[0][0] <= now:
            when, _, action, job = heapq.heappop(heap)
            schedule(heap, action(when), job)
            fired += 1
        time.sleep(0.042)
    assert len(heap) == TIMERS
    print("fired", fired)


main()
