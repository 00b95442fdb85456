"""A toy LSM tree: memtable -> sorted runs -> compaction, over 110 keys that are overwritten."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(12)


class Store:
    def __init__(self, memtable_size=30, max_runs=5):
        self.memtable, self.runs = {}, []
        self.memtable_size, self.max_runs = memtable_size, max_runs

    def put(self, key, value):
        self.memtable[key] = value
        if len(self.memtable) >= self.memtable_size:
            self.runs.append(sorted(self.memtable.items(), key=lambda kv: kv[0]))
            self.memtable = {}
            if len(self.runs) > self.max_runs:
                self.compact()

    def compact(self):
        merged = {}
        for run in self.runs:
            merged.update(run)
        self.runs = [sorted(merged.items(), key=lambda kv: kv[0])]

    def get(self, key):
        if key in self.memtable:
            return self.memtable[key]
        for run in reversed(self.runs):
            for k, v in run:
                if k == key:
                    return v
        return None


db = Store()
stop = time.monotonic() + T
writes = found = 0
while time.monotonic() < stop:
    db.put("user%03d" % rng.randrange(110), np.arange(500, dtype=np.int32) + writes)
    found += db.get("user%03d" % rng.randrange(110)) is not None
    writes += 1
    time.sleep(0.002)
print("writes", writes, "found", found, "runs", len(db.runs))
