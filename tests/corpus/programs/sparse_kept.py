import time
import numpy as np
from scipy import sparse


class Stepper:
    def __init__(self):
        self.history = []

    def step(self, i):
        n = 2_000
        r = np.random.default_rng(i).integers(0, n, (2, 3_000))
        m = sparse.csr_matrix((np.ones(3_000), (r[0], r[1])), shape=(n, n))
        self.history.append(m)
        return m.nnz


st = Stepper()
end = time.monotonic() + 3.0
i = 0
while time.monotonic() < end:
    st.step(i)
    i += 1
    time.sleep(0.004)
print(len(st.history) > 0)
