"""Load embeddings, then count word statistics in plain Python."""
import sys, random, time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def load(n=20, dim=40000):
    rng = np.random.default_rng(7)
    tables = {}
    for i in range(n):
        tables[f"layer{i}"] = rng.standard_normal(dim).astype(np.float32)
    return tables


def main():
    tables = load()
    vocab = ["w%d" % i for i in range(500)]
    r = random.Random(3)
    counts = {}
    for step in range(int(T * 200)):
        for w in r.choices(vocab, k=300):
            counts[w] = counts.get(w, 0) + 1
        time.sleep(0.004)
    print(sum(counts.values()), len(tables))


main()
