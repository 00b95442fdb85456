import sys
import time
import heapq
from dataclasses import dataclass, field
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


@dataclass(order=True)
class Job:
    due: float
    jid: int
    payload: np.ndarray = field(compare=False, repr=False, default=None)
    result: object = field(compare=False, default=None)
    state: str = field(compare=False, default="queued")


class Scheduler:
    def __init__(self):
        self.heap, self.status, self.clock = [], {}, 0

    def submit(self, jid, delay):
        j = Job(self.clock + delay, jid, np.arange(jid, jid + 800))
        heapq.heappush(self.heap, j)
        self.status[jid] = j

    def tick(self):
        self.clock += 1
        while self.heap and self.heap[0].due <= self.clock:
            j = heapq.heappop(self.heap)
            j.result = float(j.payload.mean())
            j.state = "done"


s = Scheduler()
for i in range(int(T * 140)):
    s.submit(i, 1 + i * 13 % 30)
    s.tick()
    time.sleep(0.0065)
print(sum(j.state == "done" for j in s.status.values()) > 0, i)
