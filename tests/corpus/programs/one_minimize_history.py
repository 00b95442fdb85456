"""One call of an optimizer that never ends by itself; its callback keeps each population's best."""
import numpy as np
from scipy.optimize import differential_evolution, rosen

history = []


def remember(intermediate_result):
    history.append(intermediate_result.population)
    history.append(intermediate_result.x)


print(differential_evolution(rosen, [(-5, 5)] * 8, maxiter=700, tol=0, seed=1, polish=False, callback=remember).fun, len(history))
