# event sourcing: append-only log, snapshot + compaction every 900 events; state keyed by zipf ids (saturates at 250)
import time
import numpy as np
rng = np.random.default_rng(2)
class Store:
    def __init__(self):
        self.log = []; self.state = {}; self.snapshots = []; self.version = 0
    def append(self, key, payload):
        self.log.append((self.version, key, payload)); self.version += 1
        if len(self.log) >= 900:
            self.compact()
    def compact(self):
        for _, k, p in self.log:
            cur = self.state.get(k)
            self.state[k] = p.copy() if cur is None else cur * 0.9 + p * 0.1
        self.snapshots.append((self.version, {k: v.copy() for k, v in self.state.items()}))
        del self.snapshots[:-2]
        self.log.clear()
    def read(self, k):
        v = self.state.get(k, np.zeros(512))
        for _, kk, p in self.log[-50:]:
            if kk == k: v = v * 0.9 + p * 0.1
        return v
s = Store(); t0 = time.monotonic(); acc = 0.0
for i in range(800):
    for _ in range(8):
        k = int(rng.zipf(1.3) % 250)
        s.append(k, rng.standard_normal(512))
    acc += s.read(3).sum()
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(acc, len(s.state))
