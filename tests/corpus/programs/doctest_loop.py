"""Runs the examples of a docstring many times, as a soak test does."""
import doctest
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def smooth(x, k):
    """Moving average.

    >>> a = np.arange(2000.0)
    >>> b = smooth(a, 5)
    >>> b.shape
    (1996,)
    >>> float(b[0])
    2.0
    >>> parts = [smooth(a, n) for n in range(1, 12)]
    >>> len(parts)
    11
    """
    return np.convolve(x, np.ones(k) / k, mode="valid")


finder = doctest.DocTestFinder()
runner = doctest.DocTestRunner(verbose=False)
done = 0
for i in range(int(T * 30)):
    for t in finder.find(smooth, "smooth", globs={"np": np, "smooth": smooth}):
        r = runner.run(t)
        done += r.attempted
    time.sleep(0.028)
print(runner.failures if hasattr(runner, "failures") else 0, done)
