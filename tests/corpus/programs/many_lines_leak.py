import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
kept = []


class Parser:
    def __init__(self):
        self.table = [getattr(self, n) for n in sorted(dir(self)) if n.startswith("op_")]

    def op_a(self, i): return np.zeros(90 + i % 3)
    def op_b(self, i): return np.ones(100)
    def op_c(self, i): return np.arange(110.0)
    def op_d(self, i): return np.full(80, i, float)
    def op_e(self, i): return np.linspace(0, i, 95)
    def op_f(self, i): return np.repeat(1.0 * i, 70)
    def op_g(self, i): return np.tile([1.0, i], 60)
    def op_h(self, i): return np.eye(11)
    def op_i(self, i): return np.array([i] * 120)
    def op_j(self, i): return np.geomspace(1, 10 + i, 88)
    def op_k(self, i): return np.hstack([np.zeros(40), np.ones(50)])
    def op_l(self, i): return np.diag(np.ones(10))


p = Parser()
for i in range(int(T * 130)):
    a = p.table[i % 12](i)
    kept.append(a)
    b = [p.table[(i + k) % 12](k) for k in range(5)]
    time.sleep(0.007)
print(len(b), sum(k.size for k in kept) > 0)
