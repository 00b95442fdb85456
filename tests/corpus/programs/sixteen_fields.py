import time
import numpy as np

records = []


def measure(i):
    r = {}
    r["t"] = np.arange(400.0) + i
    r["x"] = np.sin(r["t"])
    r["y"] = np.cos(r["t"])
    r["z"] = r["x"] * r["y"]
    r["vx"] = np.gradient(r["x"])
    r["vy"] = np.gradient(r["y"])
    r["vz"] = np.gradient(r["z"])
    r["speed"] = np.sqrt(r["vx"] ** 2 + r["vy"] ** 2)
    r["mask"] = r["speed"] > 0.5
    r["angle"] = np.arctan2(r["vy"], r["vx"])
    r["cum"] = np.cumsum(r["speed"])
    r["noise"] = np.random.default_rng(i).random(400)
    r["rank"] = np.argsort(r["noise"])
    r["sorted"] = np.sort(r["noise"])
    r["hist"] = np.histogram(r["noise"], 50)[0]
    r["diff"] = np.diff(r["cum"])
    return r


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    records.append(measure(i))
    i += 1
    time.sleep(0.005)
print(len(records) > 0)
