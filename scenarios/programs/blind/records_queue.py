"""Records between three threads by bounded queues: made, normalised, folded into running sums."""

import queue
import threading

import numpy as np

made: queue.Queue = queue.Queue(8)
ready: queue.Queue = queue.Queue(8)
sums: dict[int, np.ndarray] = {}


def make() -> None:
    rng = np.random.default_rng(77)
    for number in range(700):
        made.put((number % 16, rng.standard_normal((rng.integers(40, 900), 48))))
    made.put(None)


def normalise() -> None:
    while (item := made.get()) is not None:
        key, rows = item
        rows = (rows - rows.mean(0)) / (rows.std(0) + 1e-9)
        ready.put((key, np.concatenate([rows, rows**2], axis=1)))
    ready.put(None)


threads = [threading.Thread(target=make), threading.Thread(target=normalise)]
for thread in threads:
    thread.start()
while (item := ready.get()) is not None:
    key, rows = item
    product = rows.T @ rows
    sums[key] = sums[key] + product if key in sums else product
for thread in threads:
    thread.join()
print(len(sums), round(float(sum(np.trace(each) for each in sums.values()))))
