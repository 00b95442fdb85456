"""Write document versions into anonymous mmap pages, search them and keep the current version."""
import mmap
import random
import time

rng = random.Random(29)
WORDS = [f"word{i:04d} " for i in range(2000)]


class Document:
    def __init__(self, name):
        self.name = name
        self.pages = {}
        self.version = 0

    def save(self, text):
        self.version += 1
        m = mmap.mmap(-1, 65536)
        m.write(text)
        self.pages[self.version] = m
        old = self.pages.get(self.version - 1)
        if old is not None and self.version % 2:
            old.close()
            del self.pages[self.version - 1]

    def find(self, needle):
        return self.pages[self.version].find(needle, 0)


def main():
    docs = [Document(f"doc{i}") for i in range(7)]
    found = 0
    for tick in range(165):
        for _ in range(3):
            d = rng.choice(docs)
            text = "".join(rng.choices(WORDS, k=7000)).encode()[:65000]
            d.save(text)
            found += d.find(rng.choice(WORDS).encode()) >= 0
        time.sleep(0.04)
    print(found, sum(d.version for d in docs))


main()
