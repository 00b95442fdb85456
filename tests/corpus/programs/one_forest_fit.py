"""One fit of 1,200 trees."""
import numpy as np
from sklearn.ensemble import RandomForestClassifier
rng = np.random.default_rng(0)
x = rng.normal(size=(800, 10)); y = (x[:, 0] ** 2 + x[:, 1] > 1).astype(int)
m = RandomForestClassifier(n_estimators=1200).fit(x, y)
print(m.score(x, y))
