"""Text stream: every new word gets an embedding; new words keep coming (Heaps' law)."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(1)
gen = np.random.default_rng(1)


class Embedder:
    def __init__(self, dim=96):
        self.dim = dim
        self.table = {}

    def vector(self, word):
        v = self.table.get(word)
        if v is None:
            v = self.table[word] = gen.normal(scale=0.1, size=self.dim)
        return v

    def document(self, words):
        out = np.zeros(self.dim)
        for w in words:
            out += self.vector(w)
        return out / len(words)


def sentence():
    words = []
    for _ in range(12):
        words.append("w%x" % int(rng.paretovariate(0.55) * 5))
    return words


emb = Embedder()
centre = np.zeros(96)
stop = time.monotonic() + T
docs = 0
while time.monotonic() < stop:
    d = emb.document(sentence())
    centre = 0.99 * centre + 0.01 * d
    docs += 1
    time.sleep(0.004)
print("docs", docs, "vocabulary", len(emb.table), "norm %.4f" % np.linalg.norm(centre))
