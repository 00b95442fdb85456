# warnings.warn with a unique message: the text stays in __warningregistry__ (python strings)
import time, warnings
import numpy as np
warnings.simplefilter("ignore"); warnings.filterwarnings("once", category=UserWarning); warnings.showwarning = lambda *a, **k: None
rng = np.random.default_rng(34); t0 = time.monotonic(); s = 0.0
for i in range(800):
    x = rng.standard_normal((120, 120)); u, sv, vt = np.linalg.svd(x[:40])
    s += sv[0]
    warnings.warn(f"ill-conditioned step {i}: " + ",".join(f"{v:.12e}" for v in x[:3].ravel()), UserWarning)  # LEAK
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(s)
