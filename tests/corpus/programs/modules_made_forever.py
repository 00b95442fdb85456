import sys, types, time
import numpy as np
end = time.time() + 45
k = 0
while time.time() < end:
    m = types.ModuleType(f"gen_{k}"); exec("def f(x): return x\nT = [str(i) for i in range(400)]", m.__dict__)
    sys.modules[m.__name__] = m; k += 1
    np.ones(10).sum(); time.sleep(0.002)
