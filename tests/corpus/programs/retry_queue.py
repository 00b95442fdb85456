import queue
import time
import numpy as np

retry = queue.Queue()


def run(job):
    n, data, attempt = job
    return (n + attempt) % 4 != 0


def main():
    end = time.monotonic() + 4.0
    n = 0
    while time.monotonic() < end:
        job = (n, np.arange(25_000) + n, 0)
        if not run(job):
            retry.put((n, job[1], 1))
        n += 1
        if n % 25 == 0:
            while not retry.empty():
                j = retry.get()
                if not run(j):
                    retry.put((j[0], j[1], j[2] + 1))
        time.sleep(0.002)


main()
print(retry.qsize() < 30)
