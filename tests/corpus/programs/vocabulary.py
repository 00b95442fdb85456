import random
import re
import time
import numpy as np

random.seed(0)
words = ["".join(random.choice("abcdefghij") for _ in range(6)) for _ in range(600)]
text = " ".join(random.choices(words, k=20_000))
vec = {}


def vector(w):
    if w not in vec:
        vec[w] = np.frombuffer(w.encode(), np.uint8).astype(np.float64).repeat(100)
    return vec[w]


t0 = time.monotonic()
tot = 0.0
it = re.finditer(r"\w+", text)
while time.monotonic() - t0 < 3.4:
    for _ in range(40):
        m = next(it, None)
        if m is None:
            it = re.finditer(r"\w+", text)
            break
        tot += vector(m.group())[0]
    time.sleep(0.001)
print(len(vec))
