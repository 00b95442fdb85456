import sqlite3
import time
import numpy as np


class Loader:
    def __init__(self):
        self.blocks = []

    def load(self, n):
        for i in range(n):
            self.blocks.append(np.arange(60_000) + i)
            time.sleep(0.004)

    def sums(self):
        return [int(b.sum()) for b in self.blocks]

    def release(self):
        self.blocks.clear()


loader = Loader()
loader.load(120)
sums = loader.sums()
loader.release()

db = sqlite3.connect(":memory:")
db.execute("create table s (k integer, v integer)")
t0 = time.monotonic()
while time.monotonic() - t0 < 3.0:
    db.execute("delete from s")
    db.executemany("insert into s values (?, ?)", list(enumerate(sums)))
    db.execute("select sum(v) from s").fetchone()
    time.sleep(0.005)
db.close()
