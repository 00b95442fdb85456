import threading
import time
import numpy as np

out = []


def w1():
    for i in range(9):
        out.append(np.zeros(125_000) + i)
        time.sleep(0.4)


def w2():
    for i in range(9):
        out.append(np.ones(125_000) + i)
        time.sleep(0.4)


def w3():
    for i in range(9):
        out.append(np.arange(125_000) * i)
        time.sleep(0.4)


def w4():
    for i in range(9):
        out.append(np.full(125_000, i, float))
        time.sleep(0.4)


def w5():
    for i in range(9):
        out.append(np.cos(np.arange(125_000)))
        time.sleep(0.4)


def w6():
    for i in range(9):
        out.append(np.random.default_rng(i).normal(size=125_000))
        time.sleep(0.4)


ts = []
for f in (w1, w2, w3, w4, w5, w6):
    t = threading.Thread(target=f)
    t.start()
    ts.append(t)
    time.sleep(0.05)
for t in ts:
    t.join()
print(len(out))
