import sqlite3
import time
import numpy as np

db = sqlite3.connect(":memory:")
db.execute("create table b (id integer primary key, v blob)")
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.6:
    db.execute("insert into b values (?, ?)", (i, np.random.default_rng(i).random(10_000).tobytes()))
    i += 1
    time.sleep(0.004)
print(db.execute("select count(*) from b").fetchone()[0] > 0)
