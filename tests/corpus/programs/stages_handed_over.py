"""ETL in which the rows are consumed as they are transformed."""
import time, numpy as np
from collections import deque
rows = deque()
for i in range(1500):
    rows.append(np.random.default_rng(i).random(600)); time.sleep(0.001)
out = []
while rows:
    out.append(np.log1p(rows.popleft())); time.sleep(0.001)
final = []
while out:
    final.append(np.sqrt(out.pop())); time.sleep(0.001)
print(len(final))
