import functools
import itertools
import time
import numpy as np


def memo(f):
    known = {}

    @functools.wraps(f)
    def inner(*args):
        key = tuple(sorted(args))
        if key not in known:
            known[key] = f(*key)
        return known[key]

    return inner


@memo
def combine(a, b, c):
    return np.add.outer(np.arange(a * 40), np.arange(b * 40)) * c


perms = itertools.cycle(itertools.permutations(range(1, 7), 3))
end = time.monotonic() + 3.0
tot = 0
while time.monotonic() < end:
    tot += int(combine(*next(perms))[1, 1])
    time.sleep(0.001)
print(tot > 0)
