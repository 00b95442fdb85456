# agent loop: conversation trimmed by tokens once the budget is passed (rarely: twice per run)
import time, random
import numpy as np
rng = np.random.default_rng(1); random.seed(1)
BUDGET = 60_000
class Agent:
    def __init__(self):
        self.messages = []; self.tokens = 0
    def add(self, role, n):
        text = "".join(random.choices("abcdefgh ", k=n))
        emb = rng.standard_normal((n // 8, 64)).astype(np.float32)
        self.messages.append({"role": role, "text": text, "emb": emb, "n": n}); self.tokens += n
        if self.tokens > BUDGET:
            self.trim()
    def trim(self):
        system = self.messages[0]
        while self.tokens > BUDGET // 4:
            m = self.messages.pop(1); self.tokens -= m["n"]
        self.messages[0] = system
    def score(self, q):
        return max(float((m["emb"] @ q).max()) for m in self.messages)
a = Agent(); a.add("system", 800)
t0 = time.monotonic(); best = 0
for i in range(400):
    a.add("user", random.randint(100, 300))
    best = max(best, a.score(rng.standard_normal(64).astype(np.float32)))
    a.add("assistant", random.randint(100, 500))
    time.sleep(max(0, t0 + i * 0.02 - time.monotonic()))
print(best, len(a.messages))
