"""Index a news stream into inverted-index segments that are merged and expire with age."""
import random
import time

import numpy as np

rng = random.Random(83)
nprng = np.random.default_rng(83)
VOCAB = [f"term{i}" for i in range(6000)]


def document():
    ids = (nprng.zipf(1.3, 60) - 1) % len(VOCAB)
    return [VOCAB[i] for i in ids.tolist()]


class Segment:
    def __init__(self, born):
        self.born = born
        self.postings = {}
        self.docs = 0

    def add(self, doc_id, words):
        for pos, w in enumerate(words):
            self.postings.setdefault(w, []).append((doc_id, pos))
        self.docs += 1


def merge(a, b):
    m = Segment(b.born)
    m.docs = a.docs + b.docs
    for seg in (a, b):
        for w, p in seg.postings.items():
            m.postings.setdefault(w, []).extend(p)
    return m


def main():
    segments, active = [], Segment(0)
    doc_id = found = 0
    for tick in range(168):
        for _ in range(32):
            doc_id += 1
            active.add(doc_id, document())
        if tick % 7 == 6:
            segments.append(active)
            active = Segment(tick)
            if len(segments) >= 2 and segments[-1].docs >= segments[-2].docs:
                b, a = segments.pop(), segments.pop()
                segments.append(merge(a, b))
        segments = [s for s in segments if tick - s.born < 42]
        for _ in range(20):
            w = VOCAB[int(6000 ** rng.random()) - 1]
            found += sum(len(s.postings.get(w, ())) for s in segments + [active])
        time.sleep(0.036)
    print(doc_id, found, len(segments))


main()
