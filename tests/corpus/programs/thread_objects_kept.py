import threading
import time
import numpy as np


class Worker(threading.Thread):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def run(self):
        self.work = np.random.default_rng(self.n).random(12_500)
        self.result = self.work.sum()


def main():
    started = []
    end = time.monotonic() + 3.7
    n = 0
    while time.monotonic() < end:
        ws = [Worker(n + k) for k in range(3)]
        for w in ws:
            w.start()
        for w in ws:
            w.join()
        started.extend(ws)
        n += 3
        time.sleep(0.015)
    return started


done = main()
print(len(done) > 0)
