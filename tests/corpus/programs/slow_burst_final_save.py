import os
import pickle
import sys
import tempfile
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
rng = np.random.default_rng(12)
table = {i: rng.random(30) for i in range(1500)}


def train(n):
    for i in range(n):
        a, b = int(rng.integers(1500)), int(rng.integers(1500))
        d = table[a] - table[b]
        table[a] = table[a] - 0.1 * d
        table[b] = table[b] + 0.1 * d
        if i % 6 == 0:
            time.sleep(0.008)


with tempfile.TemporaryDirectory() as tmp:
    for epoch in range(5):
        train(int(T * 120))
        with open(os.path.join(tmp, "e%d.pkl" % epoch), "wb") as f:
            pickle.dump(table, f)
    blob = pickle.dumps([np.vstack(list(table.values())) for _ in range(5)])
    mat = np.vstack(list(table.values()))
    u, s, vt = np.linalg.svd(mat, full_matrices=False)
    print(len(os.listdir(tmp)), len(blob), round(float(s[0]), 4))
