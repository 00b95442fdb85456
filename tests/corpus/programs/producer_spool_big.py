import sys
import time
import threading
import zlib
from collections import deque
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Spooler(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.todo = deque()
        self.done = 0
        self.running = True

    def run(self):
        while self.running:
            if not self.todo:
                time.sleep(0.002)
                continue
            block = self.todo.popleft()
            self.done += len(zlib.compress(block.tobytes(), 1))
            time.sleep(0.05)


sp = Spooler()
sp.start()
for i in range(int(T * 65)):
    t = np.linspace(i, i + 1, 7500)
    sp.todo.append(np.sin(2 * np.pi * t))
    time.sleep(0.0145)
sp.running = False
print("acquired", i + 1)
