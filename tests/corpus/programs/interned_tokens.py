import random
import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Index:
    def __init__(self):
        self.postings = {}

    def add(self, doc_id, words):
        for pos, w in enumerate(words):
            self.postings.setdefault(w, []).append((doc_id, pos))


def document(r, i):
    common = ["the", "of", "and", "array", "memory"]
    return [r.choice(common) if r.random() < 0.5 else "id_%x" % r.getrandbits(40) for _ in range(60)]


ix, r = Index(), random.Random(6)
for i in range(int(T * 140)):
    ix.add(i, document(r, i))
    time.sleep(0.0064)
print(len(ix.postings) > 100, i)
