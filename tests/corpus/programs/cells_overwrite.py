import time
import numpy as np

ns = {"np": np}
for number in range(300):
    source = f"x = np.arange({5_000 + number % 7})\ny = (x * 2).sum()"
    exec(compile(source, f"<ipython-input-{number}-f00d>", "exec"), ns)
    time.sleep(0.008)
print(ns["y"])
