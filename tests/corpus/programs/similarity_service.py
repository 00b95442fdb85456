"""Answer nearest-profile queries for quantised NumPy feature vectors with a memo of answers."""
import random
import time
from collections import OrderedDict

import numpy as np

nprng = np.random.default_rng(33)
rng = random.Random(33)
PROFILES = nprng.normal(size=(40, 96)).astype(np.float32)
memo = {}
recent = OrderedDict()


def explain(vec):
    key = np.round(vec, 3).tobytes()
    hit = memo.get(key)
    if hit is None:
        d = PROFILES @ vec
        order = np.argsort(d)[:6].tolist()
        hit = memo[key] = {f"profile-{i}": float(d[i]) for i in order}
    return hit


def page(user):
    html = recent.get(user)
    if html is None:
        html = recent[user] = f"<p>{user}</p>" * 40
        if len(recent) > 500:
            recent.popitem(last=False)
    return html


def main():
    size = 0
    for tick in range(165):
        for _ in range(60):
            answer = explain(nprng.normal(size=96).astype(np.float32))
            size += len(page(rng.randrange(900))) + len(answer)
        time.sleep(0.04)
    print(size)


main()
