"""One call of solve_ivp that takes all of the run; it keeps a list of states until it ends."""
import numpy as np
from scipy.integrate import solve_ivp
A = np.random.default_rng(0).normal(size=(60, 60)) * 0.1 - np.eye(60)
sol = solve_ivp(lambda t, y: A @ np.sin(y), (0, 4000), np.ones(60), max_step=0.1)
print(sol.y.shape)
