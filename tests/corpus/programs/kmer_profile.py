"""Count k-mers of simulated reads until every k-mer of the finite alphabet has been seen."""
import time

import numpy as np

rng = np.random.default_rng(15)
K = 8


def read(length):
    return "".join(np.array(list("ACGT"))[rng.integers(0, 4, length)].tolist())


def main():
    profile = {}
    bases = 0
    for tick in range(60):
        for _ in range(4):
            r = read(600)
            bases += len(r)
            for i in range(len(r) - K + 1):
                kmer = r[i:i + K]
                entry = profile.get(kmer)
                if entry is None:
                    profile[kmer] = [1, i, kmer[::-1]]
                else:
                    entry[0] += 1
        time.sleep(0.04)
    # enough depth: from here on new reads are only looked up, not admitted
    lookups = hits = 0
    for tick in range(110):
        r = read(1500)
        for i in range(len(r) - K + 1):
            lookups += 1
            entry = profile.get(r[i:i + K])
            if entry is not None:
                entry[0] += 1
                hits += 1
        time.sleep(0.04)
    print(bases, len(profile), lookups, hits)


main()
