"""pandas: read days, clean each, join, then score each group and collect the scores."""
import time, numpy as np, pandas as pd
rng = np.random.default_rng(0)
def read():
    frames = []
    for day in range(150):
        frames.append(pd.DataFrame({"user": rng.integers(0, 300, 2000), "v": rng.random(2000)})); time.sleep(0.005)
    return pd.concat(frames, ignore_index=True)
def clean(df):
    out = []
    for user, part in df.groupby("user"):
        out.append(part[part.v > 0.1].assign(z=(part.v - part.v.mean()) / part.v.std())); time.sleep(0.003)
    return out
def score(parts):
    out = []
    for p in parts:
        out.append(p[['v','z']].rolling(5).mean().dropna()); time.sleep(0.003)
    return out
df = read(); parts = clean(df); del df; res = score(parts); print(len(res))
