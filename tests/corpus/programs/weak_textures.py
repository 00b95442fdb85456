"""Textures are shared through a WeakValueDictionary; actors come and go."""
import random
import sys
import time
import weakref

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(5)
released = [0]


class Texture:
    def __init__(self, name, side):
        self.name = name
        self.data = np.full((side, side, 3), hash(name) % 255, dtype=np.uint8)


class Library:
    def __init__(self):
        self.live = weakref.WeakValueDictionary()

    def get(self, name):
        tex = self.live.get(name)
        if tex is None:
            tex = Texture(name, 40 + name % 60)
            weakref.finalize(tex, self.dropped, name)
            self.live[name] = tex
        return tex

    @staticmethod
    def dropped(name):
        released[0] += 1


lib = Library()
actors = []
serial = 0
stop = time.monotonic() + T
while time.monotonic() < stop:
    serial += 1
    actors.append({"id": serial, "left": rng.randint(20, 120),
                   "tex": lib.get(serial // 4 + rng.randrange(60))})
    for a in actors:
        a["left"] -= 1
    actors = [a for a in actors if a["left"] > 0]
    time.sleep(0.004)
print("actors", len(actors), "textures", len(lib.live), "released", released[0])
