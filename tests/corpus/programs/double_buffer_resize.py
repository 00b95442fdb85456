import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Display:
    def __init__(self, h, w):
        self.resize(h, w)

    def resize(self, h, w):
        self.front = np.zeros((h, w, 3), np.uint8)
        self.back = np.zeros((h, w, 3), np.uint8)

    def draw(self, t):
        self.back[...] = 0
        h, w, _ = self.back.shape
        self.back[t % h, :, 0] = 255
        self.back[:, t * 3 % w, 1] = np.linspace(0, 255, h)
        self.front, self.back = self.back, self.front


d, g = Display(240, 320), np.random.default_rng(2)
lit = 0
for t in range(int(T * 120)):
    if t % 31 == 30:
        d.resize(int(g.integers(100, 500)), int(g.integers(100, 600)))
    d.draw(t)
    lit += int((d.front[:, :, 0] > 0).sum())
    time.sleep(0.0075)
print(lit)
