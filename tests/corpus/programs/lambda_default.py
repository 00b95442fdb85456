import time
import numpy as np

checks = []
end = time.monotonic() + 4.0
i = 0
while time.monotonic() < end:
    ref = np.cumsum(np.ones(700)) + i
    checks.append(lambda x, ref=ref: x < ref.max())
    if i % 5 == 0:
        checks[0](i)
    i += 1
    time.sleep(0.0008)
print(len(checks) > 0)
