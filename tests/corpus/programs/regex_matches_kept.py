import re
import time
import numpy as np

pat = re.compile(r"(\d+)-(\w+)")
found = {}
end = time.monotonic() + 3.3
i = 0
while time.monotonic() < end:
    np.arange(500).sum()
    for _ in range(5):
        text = f"{i}-item " + "x" * 4_000
        found.setdefault(i % 16, []).append(pat.match(text))
        i += 1
    time.sleep(0.003)
print(len(found))
