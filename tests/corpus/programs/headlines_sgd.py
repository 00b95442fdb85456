"""Incremental text classifier: hashing vectoriser + SGD, rolling accuracy of 15 batches."""
import random
import sys
import time
from collections import deque

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(3)
SPORT = "goal match team coach league cup score final".split()
MONEY = "bank stock rate bond profit share market tax".split()
OTHER = ["w%d" % i for i in range(400)]


def batch(n):
    texts, labels = [], []
    for _ in range(n):
        y = rng.randrange(2)
        words = rng.choices(MONEY if y else SPORT, k=3) + rng.choices(OTHER, k=9)
        texts.append(" ".join(words))
        labels.append(y)
    return texts, np.array(labels)


vec = HashingVectorizer(n_features=2 ** 14)
clf = SGDClassifier(loss="log_loss")
recent = deque(maxlen=15)
stop = time.perf_counter() + T
batches = 0
while time.perf_counter() < stop:
    texts, y = batch(rng.randint(10, 50))
    X = vec.transform(texts)
    if batches:
        recent.append(clf.predict_proba(X)[:, 1])
    clf.partial_fit(X, y, classes=[0, 1])
    batches += 1
    time.sleep(0.004)
print("batches", batches, "mean p %.3f" % np.concatenate(list(recent)).mean())
