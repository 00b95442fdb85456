import os
import sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time
import warnings
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA

warnings.filterwarnings("ignore")
T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
km = MiniBatchKMeans(n_clusters=6, random_state=0, n_init=1)
pca = IncrementalPCA(n_components=3)
inertia = 0.0
n = int(T * 20)
for i in range(n):
    g = np.random.default_rng(i)
    X = g.standard_normal((120, 8)) + g.integers(0, 6, (120, 1)) * 3
    km.partial_fit(X)
    pca.partial_fit(X)
    inertia += float(np.abs(pca.transform(X)).mean())
    time.sleep(0.025)
print(n, km.cluster_centers_.shape)
