"""Store sensor blobs in an in-memory database, delete rows older than the retention period and summarise them."""
import sqlite3
import time
import zlib

import numpy as np

RETENTION = 350


def main():
    rng = np.random.default_rng(12)
    con = sqlite3.connect(":memory:")
    con.execute("pragma auto_vacuum=incremental")
    con.execute("create table reading (t integer, sensor integer, payload blob)")
    con.execute("create index by_time on reading (t)")
    total = 0.0
    deleted = 0
    for t in range(1150):
        signal = np.cumsum(rng.normal(size=1500)).astype(np.float32)
        con.execute("insert into reading values (?,?,?)", (t, t % 7, zlib.compress(signal.tobytes(), 1)))
        if t % 50 == 49:
            cur = con.execute("delete from reading where t < ?", (t - RETENTION,))
            deleted += cur.rowcount
            con.execute("pragma incremental_vacuum(200)").fetchall()
            con.commit()
        if t % 25 == 0:
            for (payload,) in con.execute("select payload from reading order by t desc limit 8"):
                total += float(np.frombuffer(zlib.decompress(payload), np.float32).std())
        time.sleep(0.004)
    rows = con.execute("select count(*) from reading").fetchone()[0]
    print("rows", rows, "deleted", deleted, "total", round(total, 2))


if __name__ == "__main__":
    main()
