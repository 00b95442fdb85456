import collections
import time
import numpy as np


def normalise(x):
    return (x - x.mean()) / (x.std() + 1e-9)


window = collections.deque(maxlen=50)
history = {}


def main():
    end = time.monotonic() + 3.8
    i = 0
    while time.monotonic() < end:
        x = np.random.default_rng(i).normal(size=6_000)
        window.append(normalise(x))
        normalise(x[:3_000]).sum()
        if i % 4 == 0:
            history[i] = normalise(x)
        i += 1
        time.sleep(0.003)


main()
print(len(window))
