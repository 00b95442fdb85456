import threading
import time
import numpy as np

state = np.zeros(12_500)
snapshots = []
stop = threading.Event()


def snap():
    while not stop.wait(0.1):
        snapshots.append(state.copy())


t = threading.Thread(target=snap)
t.start()
end = time.monotonic() + 5.0
while time.monotonic() < end:
    state += np.sqrt(np.abs(state) + 1)
    time.sleep(0.002)
stop.set()
t.join()
print(len(snapshots) > 0)
