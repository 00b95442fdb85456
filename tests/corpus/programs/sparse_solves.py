import time
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

last = None
end = time.monotonic() + 2.6
i = 0
while time.monotonic() < end:
    n = 500 + 100 * (i % 10)
    A = sparse.diags([-np.ones(n - 1), 2.5 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csc")
    last = spsolve(A, np.ones(n))
    i += 1
    time.sleep(0.004)
print(last.size)
