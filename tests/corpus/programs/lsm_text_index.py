"""Index a stream of short documents in a log-structured merge tree that flushes, compacts and drops expired documents."""
import random
import time

import numpy as np

FLUSH_DOCS = 60
RETAIN = 900
FANOUT = 4


class Run:
    def __init__(self, postings, level):
        self.postings = postings
        self.level = level

    def lookup(self, term):
        return self.postings.get(term)


class Index:
    def __init__(self):
        self.mem = {}
        self.mem_docs = 0
        self.runs = []
        self.merges = 0

    def add(self, doc_id, terms):
        for term in terms:
            self.mem.setdefault(term, []).append(doc_id)
        self.mem_docs += 1
        if self.mem_docs >= FLUSH_DOCS:
            self.flush(doc_id)

    def flush(self, now):
        postings = {t: np.array(ids, dtype=np.int64) for t, ids in self.mem.items()}
        self.runs.append(Run(postings, 0))
        self.mem = {}
        self.mem_docs = 0
        level = 0
        while sum(r.level == level for r in self.runs) >= FANOUT:
            self.compact(level, now)
            level += 1

    def compact(self, level, now):
        group = [r for r in self.runs if r.level == level]
        merged = {}
        for term in sorted(set().union(*(r.postings for r in group))):
            ids = np.concatenate([r.postings[term] for r in group if term in r.postings])
            ids = np.unique(ids[ids > now - RETAIN])
            if ids.size:
                merged[term] = ids
        self.runs = [r for r in self.runs if r.level != level]
        top = min(level + 1, 2)
        if top == 2:
            for old in [r for r in self.runs if r.level == 2]:
                for term, ids in old.postings.items():
                    ids = ids[ids > now - RETAIN]
                    if ids.size:
                        merged[term] = np.union1d(ids, merged.get(term, ids))
                self.runs.remove(old)
        self.runs.append(Run(merged, top))
        self.merges += 1

    def search(self, term):
        hits = [r.lookup(term) for r in self.runs]
        return sum(h.size for h in hits if h is not None) + len(self.mem.get(term, ()))


def main():
    rnd = random.Random(15)
    index = Index()
    found = 0
    for doc in range(4200):
        terms = {int(rnd.paretovariate(0.7)) % 3000 for _ in range(30)}
        index.add(doc, terms)
        if doc % 10 == 0:
            found += index.search(rnd.randrange(1, 40))
            time.sleep(0.009)
    size = sum(ids.nbytes for r in index.runs for ids in r.postings.values())
    print("runs", len(index.runs), "merges", index.merges, "found", found, "bytes", size)


if __name__ == "__main__":
    main()
