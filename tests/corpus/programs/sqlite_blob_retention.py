"""Embeddings as blobs in an SQLite file, with a retention limit and nearest-neighbour queries."""
import os
import sqlite3
import sys
import tempfile
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DIM = 256
KEEP = 300


def open_db(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("CREATE TABLE emb (id INTEGER PRIMARY KEY, ts REAL, vec BLOB)")
    return db


def insert(db, rng, n):
    rows = [(time.time(), rng.normal(size=DIM).astype(np.float32).tobytes()) for _ in range(n)]
    with db:
        db.executemany("INSERT INTO emb (ts, vec) VALUES (?, ?)", rows)
        db.execute("DELETE FROM emb WHERE id <= (SELECT MAX(id) FROM emb) - ?", (KEEP,))


def nearest(db, q, k=5):
    ids, vecs = [], []
    for rid, blob in db.execute("SELECT id, vec FROM emb"):
        ids.append(rid)
        vecs.append(np.frombuffer(blob, dtype=np.float32))
    mat = np.stack(vecs)
    sims = mat @ q / (np.linalg.norm(mat, axis=1) * np.linalg.norm(q))
    best = np.argsort(-sims)[:k]
    return [(ids[i], float(sims[i])) for i in best]


def main():
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as tmp:
        db = open_db(os.path.join(tmp, "emb.db"))
        start = time.perf_counter()
        top = []
        while time.perf_counter() - start < T:
            insert(db, rng, 5)
            top.append(nearest(db, rng.normal(size=DIM).astype(np.float32))[0][1])
            time.sleep(0.003)
        count = db.execute("SELECT COUNT(*) FROM emb").fetchone()[0]
        db.close()
    print("rows", count <= KEEP, "queries", len(top) > 0)


main()
