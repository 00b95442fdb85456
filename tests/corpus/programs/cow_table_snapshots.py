"""Keep a paged table with copy-on-write snapshots, retaining the last twelve versions and a few checkpoints."""
import time
from collections import deque

import numpy as np

PAGES = 48
PAGE = 2048


class Table:
    def __init__(self):
        self.pages = tuple(np.zeros(PAGE) for _ in range(PAGES))

    def commit(self, changes):
        pages = list(self.pages)
        for page, (offsets, values) in changes.items():
            fresh = pages[page].copy()
            fresh[offsets] += values
            pages[page] = fresh
        self.pages = tuple(pages)
        return self.pages


def checksum(snapshot):
    return sum(float(p[::64].sum()) for p in snapshot)


def main():
    rng = np.random.default_rng(27)
    table = Table()
    versions = deque(maxlen=12)
    checkpoints = {}
    drift = 0.0
    for version in range(420):
        changes = {}
        hot = (version // 6) % PAGES
        for page in {hot, int(rng.integers(0, PAGES)), int(rng.integers(0, PAGES)), int(rng.integers(0, PAGES))}:
            changes[page] = (rng.integers(0, PAGE, 50), rng.normal(size=50))
        versions.append(table.commit(changes))
        if version % 30 == 0:
            checkpoints[version] = table.pages
            for old in [v for v in checkpoints if v < version - 90]:
                del checkpoints[old]
        if version % 10 == 0:
            drift += checksum(versions[-1]) - checksum(versions[0])
        time.sleep(0.011)
    print("versions", len(versions), "checkpoints", sorted(checkpoints), "drift", round(drift, 4))


if __name__ == "__main__":
    main()
