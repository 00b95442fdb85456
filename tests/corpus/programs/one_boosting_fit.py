"""One fit that builds a model of 1,500 trees: each tree is kept, as it is the result."""
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
rng = np.random.default_rng(0)
x = rng.normal(size=(500, 10)); y = x[:, 0] ** 2 + x[:, 1]
m = GradientBoostingRegressor(n_estimators=1500, max_depth=3).fit(x, y)
print(m.score(x, y))
