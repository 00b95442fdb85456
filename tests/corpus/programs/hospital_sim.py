"""Simulate an emergency ward as a discrete event system in which the waiting queue swells in rush hours and drains afterwards."""
import heapq
import itertools
import time
from collections import deque

import numpy as np

BEDS = 12
DAY = 900.0


class Patient:
    def __init__(self, pid, now, rng):
        self.pid = pid
        self.arrived = now
        self.vitals = rng.normal(80.0, 9.0, 3072)
        self.severity = float(np.abs(self.vitals[:64] - 80).mean())


def rate(now):
    phase = (now % DAY) / DAY
    return 2.4 if phase < 0.4 else 0.45


def main():
    rng = np.random.default_rng(11)
    seq = itertools.count()
    events = [(0.0, next(seq), "arrive", None)]
    waiting = deque()
    free = BEDS
    waits_sum, waits_n, peak = 0.0, 0, 0
    severity = np.zeros(40)
    handled = 0
    horizon = 3 * DAY
    while events:
        now, _, kind, who = heapq.heappop(events)
        if now > horizon:
            break
        if kind == "arrive":
            patient = Patient(handled, now, rng)
            waiting.append(patient)
            heapq.heappush(events, (now + rng.exponential(1 / rate(now)), next(seq), "arrive", None))
        else:
            free += 1
            severity[min(39, int(who.severity * 2))] += 1
        while free and waiting:
            patient = waiting.popleft()
            free -= 1
            waits_sum += now - patient.arrived
            waits_n += 1
            patient.vitals *= 0.98
            heapq.heappush(events, (now + rng.gamma(2.0, 4.0), next(seq), "leave", patient))
        peak = max(peak, len(waiting))
        handled += 1
        if handled % 4 == 0:
            time.sleep(0.003)
    print("patients", waits_n, "mean wait", round(waits_sum / waits_n, 2), "peak queue", peak)


if __name__ == "__main__":
    main()
