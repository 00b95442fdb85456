import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
_cache = {}


def features(user, request_id):
    key = (user, request_id)
    if key not in _cache:
        base = np.arange(32, dtype=np.float32)
        _cache[key] = np.outer(base, base + user)
    return _cache[key]


def handle(i):
    f = features(i % 20, "req-%06d" % i)
    return float(np.trace(f))


s = 0.0
for i in range(int(T * 100)):
    s += handle(i)
    tmp = [np.ones(k + 1) for k in range(12)]
    s += tmp[-1].sum()
    time.sleep(0.009)
print(s)
