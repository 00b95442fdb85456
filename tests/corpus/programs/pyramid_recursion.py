import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def down(a):
    h, w = a.shape[0] // 2 * 2, a.shape[1] // 2 * 2
    a = a[:h, :w]
    return (a[::2, ::2] + a[1::2, ::2] + a[::2, 1::2] + a[1::2, 1::2]) / 4


def pyramid(a):
    if min(a.shape) < 8:
        return [a]
    return [a] + pyramid(down(a))


def blend(p, q):
    if not p:
        return 0.0
    return float((p[0] * q[0]).mean()) + blend(p[1:], q[1:])


s = 0.0
for i in range(int(T * 75)):
    g = np.random.default_rng(i)
    shape = (64 + int(g.integers(0, 260)), 64 + int(g.integers(0, 260)))
    s += blend(pyramid(g.random(shape)), pyramid(g.random(shape)))
    time.sleep(0.01)
print(round(s, 4))
