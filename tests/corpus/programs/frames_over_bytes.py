import os
import time
import numpy as np

frames = []
t0 = time.monotonic()
while time.monotonic() - t0 < 4.0:
    packet = os.urandom(20_000)
    frames.append(np.frombuffer(packet, np.uint8))
    frames[-1].mean()
    time.sleep(0.01)
