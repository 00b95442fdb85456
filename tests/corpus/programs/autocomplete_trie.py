"""Answer autocomplete queries from a trie that is rebuilt from a new vocabulary now and then."""
import random
import time

rng = random.Random(12)
SYL = ["ka", "to", "mi", "ne", "ro", "su", "li", "pa", "shi", "ber", "gon", "tal"]


def vocabulary(n):
    return {"".join(rng.choice(SYL) for _ in range(rng.randrange(3, 7))) for _ in range(n)}


class Trie:
    def __init__(self):
        self.root = {}
        self.size = 0

    def add(self, word, score):
        node = self.root
        for ch in word:
            node = node.setdefault(ch, {})
        node["$"] = score
        self.size += 1

    def complete(self, prefix, k=5):
        node = self.root
        for ch in prefix:
            node = node.get(ch)
            if node is None:
                return []
        out, stack = [], [(prefix, node)]
        while stack and len(out) < 60:
            p, n = stack.pop()
            for ch, child in n.items():
                if ch == "$":
                    out.append((child, p))
                else:
                    stack.append((p + ch, child))
        return sorted(out, reverse=True)[:k]


def main():
    live = Trie()
    building, pending = None, []
    answered = 0
    for tick in range(168):
        if tick % 42 == 0:
            building, pending = Trie(), sorted(vocabulary(9000))
        for _ in range(min(300, len(pending))):
            w = pending.pop()
            building.add(w, len(w) * 7919 % 1000)
        if building is not None and not pending:
            live, building = building, None
        for _ in range(25):
            answered += len(live.complete(rng.choice(SYL) + rng.choice(SYL)))
        time.sleep(0.04)
    print("answers", answered, "words", live.size)


main()
