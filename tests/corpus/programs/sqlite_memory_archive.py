"""Frames of a camera compressed into an SQLite database in memory that nobody ever empties."""
import sqlite3
import sys
import time
import zlib

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
SIDE = 128


def connect():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE frame (id INTEGER PRIMARY KEY, ts REAL, mean REAL, data BLOB)")
    db.execute("CREATE INDEX by_mean ON frame (mean)")
    return db


def camera(rng):
    yy, xx = np.mgrid[:SIDE, :SIDE]
    k = 0
    while True:
        spot = 120 * np.exp(-((xx - k % SIDE) ** 2 + (yy - 40) ** 2) / 60)
        yield (spot + rng.integers(0, 40, size=(SIDE, SIDE))).astype(np.uint8)
        k += 1


def store(db, frame):
    blob = zlib.compress(frame.tobytes(), 1)
    with db:
        db.execute("INSERT INTO frame (ts, mean, data) VALUES (?, ?, ?)",
                   (time.time(), float(frame.mean()), blob))


def brightest(db):
    row = db.execute("SELECT data FROM frame ORDER BY mean DESC LIMIT 1").fetchone()
    return np.frombuffer(zlib.decompress(row[0]), np.uint8).reshape(SIDE, SIDE)


def main():
    rng = np.random.default_rng(0)
    db = connect()
    start = time.perf_counter()
    n = 0
    for frame in camera(rng):
        if time.perf_counter() - start > T:
            break
        store(db, frame)
        if n % 20 == 0:
            top = brightest(db)
        n += 1
        time.sleep(0.001)
    db.close()
    print("frames", n > 0, "top", top.shape)


main()
