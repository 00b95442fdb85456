"""Crawler: a 'seen' set of long URLs and a dict of page titles grow for ever; arrays do not."""
import random
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(19)
seen = set()
titles = {}
recent = deque(maxlen=50)


def fetch(url):
    words = [rng.choice("alpha beta gamma delta".split()) for _ in range(40)]
    links = ["https://site%d.example/%s?session=%032x"
             % (rng.randrange(50), "/".join(words[i:i + 8]), rng.getrandbits(128))
             for i in range(8)]
    return " ".join(words), links


def score(text):
    counts = np.bincount(np.frombuffer(text.encode(), dtype=np.uint8), minlength=128)
    recent.append(counts / counts.sum())
    return float(recent[-1] @ np.mean(list(recent), axis=0))


frontier = deque(["https://start.example/"])
stop = time.monotonic() + T
pages, s = 0, 0.0
while time.monotonic() < stop:
    url = frontier.popleft()
    text, links = fetch(url)
    s += score(text)
    titles[url] = {"title": text[:120], "words": text.split(), "links": links}
    for link in links:
        if link not in seen:
            seen.add(link)
            if len(frontier) < 500:
                frontier.append(link)
    pages += 1
    time.sleep(0.003)
print("pages", pages, "seen", len(seen), "score %.3f" % s)
