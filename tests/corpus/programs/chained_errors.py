import time
import numpy as np

last = None


def attempt(i):
    global last
    scratch = np.ones(9_000) * i
    try:
        raise ConnectionError(i, scratch[0]) from last
    except ConnectionError as e:
        last = e


def main(seconds):
    end = time.monotonic() + seconds
    i = 0
    while time.monotonic() < end:
        attempt(i)
        i += 1
        time.sleep(0.004)


main(2.9)
depth = 0
e = last
while e is not None:
    e = e.__cause__
    depth += 1
print(depth > 0)
