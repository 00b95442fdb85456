import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
rows = []
agg = {}
for i in range(int(T * 250)):
    for k in range(40):
        rows.append((i, k, "host-%d" % (i % 100), i * 0.5 + k))
    if len(rows) >= 6000:
        for a, b, h, v in rows:
            agg[h] = agg.get(h, 0.0) + v
        rows = []
    time.sleep(0.0035)
print(len(agg), round(sum(agg.values()), 2))
