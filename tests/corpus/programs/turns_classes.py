"""Three stages of three classes run in turn; each keeps its parts until it is done."""
import time, numpy as np

class Stage:
    def __init__(self): self.kept = []
    def make(self, i): return np.full(500, i)
    def run(self):
        for i in range(1200):
            self.kept.append(self.make(i)); time.sleep(0.0004)
        return sum(float(k[0]) for k in self.kept)
class A(Stage):
    def make(self, i): return super().make(i) + 1
class B(Stage):
    def make(self, i): return super().make(i) * 2
class C(Stage):
    def make(self, i): return super().make(i) - 1
for kind in (A, B, C):
    print(kind().run())
