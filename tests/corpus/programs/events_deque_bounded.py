import collections
import random
import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
events = collections.deque(maxlen=3000)
names = collections.Counter()
r = random.Random(1)
for i in range(int(T * 220)):
    for k in range(15):
        who = "user%03d" % r.randrange(500)
        events.append({"i": i, "who": who, "path": "/x/%d/%d" % (i, k), "ms": r.random() * 100})
        names[who] += 1
    if i % 50 == 0:
        slow = sorted(events, key=lambda e: -e["ms"])[:10]
    time.sleep(0.004)
print(len(events), len(names), round(slow[0]["ms"], 4))
