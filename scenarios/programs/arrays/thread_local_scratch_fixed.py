"""Threads keep one scratch array each in thread-local storage, and use it again."""

import threading

import numpy as np

OUTCOME = "stable"

scratch = threading.local()


def handle(request: int) -> float:
    if not hasattr(scratch, "work"):
        scratch.work = np.empty(2_500)
    scratch.work[:] = request / 7
    return float((scratch.work * 2).sum())


def serve(results: list[float], requests: int) -> None:
    for request in range(requests):
        results[0] += handle(request)


def main() -> None:
    results = [0.0]
    helper = threading.Thread(target=serve, args=(results, 400))
    helper.start()
    serve(results, 40_000)
    helper.join()
    print("served" if results[0] > 0 else "idle")


if __name__ == "__main__":
    main()
