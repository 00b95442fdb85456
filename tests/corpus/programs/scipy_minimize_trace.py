import os
import sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time
import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
trace = []


def watch(xk):
    trace.append(np.array(xk))


best = 1e9
for start in range(int(T * 20)):
    x0 = np.random.default_rng(start).uniform(-1.5, 1.5, 60)
    res = minimize(rosen, x0, jac=rosen_der, method="L-BFGS-B", callback=watch, options={"maxiter": 25})
    best = min(best, float(res.fun))
    time.sleep(0.025)
print(len(trace) > 0, round(best, 4))
