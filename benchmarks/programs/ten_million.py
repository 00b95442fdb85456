"""Arrays of many sizes from many lines in two threads, one in a thousand kept: a file to analyse.

Makes about ten million events at size 1, of arrays of 8 items or as many as a second argument says,
and up to 599 more.
"""

import sys
import threading
import time
from collections.abc import Callable

import numpy as np

MAKERS = 24


def make_maker(name: str) -> Callable[[int], np.ndarray]:
    """A function on a line of its own, so that the recording has many sites."""
    source = "\n" * int(name) + f"def make_{name}(n):\n    return empty(n)\n"
    scope: dict = {"empty": np.empty}
    exec(compile(source, "makers.py", "exec"), scope)
    return scope[f"make_{name}"]


def work(pairs: int, kept: list[np.ndarray], least: int = 8) -> None:
    """Makes ``pairs`` arrays; each lives until 50 more were made, a few stay."""
    makers = [make_maker(str(i)) for i in range(MAKERS)]
    window: list = [None] * 50
    for i in range(pairs):
        array = makers[i % MAKERS](least + i % 600)
        window[i % 50] = array
        if i % 1000 == 0:
            kept.append(array)


if __name__ == "__main__":
    began = time.monotonic_ns()
    pairs = int(5_000_000 * float(sys.argv[1]))
    least = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    kept: list[np.ndarray] = []
    other = threading.Thread(target=work, args=(pairs // 5, kept, least))
    other.start()
    work(pairs - pairs // 5, kept, least)
    other.join()
    print(began, time.monotonic_ns())
