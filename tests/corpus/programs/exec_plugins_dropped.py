import time, random
import numpy as np
src = "\n".join(f"def f{i}(x):\n    y = x + {i}\n    return [y * k for k in range({i % 7 + 1})]\n" for i in range(2500))
end = time.time() + 3
k = 0
while time.time() < end:
    ns = {}
    exec(compile(src, f"plugin{k}", "exec"), ns)
    k += int(len(ns["f5"](1)) > 0)
    np.ones(1000).sum()
print(k > 0)
