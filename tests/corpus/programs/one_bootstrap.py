"""One bootstrap over batches; their means wait in a list until they are joined."""
import numpy as np
from scipy.stats import bootstrap, permutation_test
rng = np.random.default_rng(0)
print(bootstrap((rng.normal(size=300),), np.mean, n_resamples=30000, batch=20, vectorized=True).confidence_interval)
