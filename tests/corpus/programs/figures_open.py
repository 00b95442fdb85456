import time
import warnings
import numpy as np
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

warnings.simplefilter("ignore")
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.0:
    x = np.linspace(0, 1, 20_000)
    y = np.sin(x * i)
    fig = plt.figure(figsize=(2, 2))
    fig.add_axes([0.1, 0.1, 0.8, 0.8]).plot(x, y)
    i += 1
    time.sleep(0.01)
print(i > 0)
