"""Load parent and child records through a weak identity map inside short units of work."""
import random
import time
import weakref

rng = random.Random(28)


class Entity:
    def __init__(self, key):
        self.key = key
        self.fields = {f"f{i}": f"{key}-{i}-{i * 37}" for i in range(12)}
        self.parent = None
        self.children = []

    def adopt(self, child):
        child.parent = self
        self.children.append(child)


class Session:
    identity = weakref.WeakValueDictionary()

    def __init__(self):
        self.dirty = []
        self.undo_log = {}

    def get(self, key):
        e = self.identity.get(key)
        if e is None:
            e = self.identity[key] = Entity(key)
        return e

    def change(self, e, name):
        self.undo_log[(e.key, name)] = e.fields[name]
        e.fields[name] += "!"
        self.dirty.append(e)

    def commit(self):
        n = len(self.dirty)
        self.dirty.clear()
        self.undo_log.clear()
        return n


def main():
    written = peak = 0
    for unit in range(165):
        s = Session()
        for _ in range(12):
            order = s.get(("order", rng.randrange(10**6)))
            for _ in range(14):
                line = s.get(("line", rng.randrange(10**6)))
                order.adopt(line)
                if rng.random() < 0.3:
                    s.change(line, f"f{rng.randrange(12)}")
        peak = max(peak, len(Session.identity))
        written += s.commit()
        del s, order, line
        time.sleep(0.041)
    print(written, peak)


main()
