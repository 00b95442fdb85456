import time
import numpy as np

state = {}


def tick(i):
    k = i % 40
    if k in state:
        state[k] = state[k] * 0.99 + 0.01
    else:
        state[k] = np.ones(25_000)


def main(seconds):
    end = time.monotonic() + seconds
    i = 0
    while time.monotonic() < end:
        tick(i)
        i += 1
        time.sleep(0.002)


main(3.7)
