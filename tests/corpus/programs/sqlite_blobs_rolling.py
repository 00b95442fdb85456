import sqlite3
import time
import numpy as np

db = sqlite3.connect(":memory:")
db.execute("create table b (id integer primary key, v blob)")
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    db.execute("insert into b values (?, ?)", (i, np.arange(5_000.0).tobytes()))
    db.execute("delete from b where id <= ?", (i - 100,))
    row = db.execute("select v from b where id = ?", (max(0, i - 50),)).fetchone()
    np.frombuffer(row[0]).sum()
    i += 1
    time.sleep(0.002)
db.close()
