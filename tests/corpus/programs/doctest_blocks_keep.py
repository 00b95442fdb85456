"""A session document is replayed many times against the same globals."""
import doctest
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0

SESSION = """
>>> x = np.linspace(0, 1, 900)
>>> y = model(x)
>>> len(y)
900
>>> seen.append(y)
>>> bool(seen[-1][0] == y[0])
True
"""


def model(x):
    return np.exp(-x) * len(seen)


seen = []
globs = {"np": np, "model": model, "seen": seen}
parser = doctest.DocTestParser()
runner = doctest.DocTestRunner(verbose=False)
n = int(T * 60)
for i in range(n):
    t = parser.get_doctest(SESSION, globs, "session", "session.txt", 0)
    runner.run(t, clear_globs=False)
    globs = t.globs
    time.sleep(0.0125)
print(n, runner.tries if hasattr(runner, "tries") else "")
