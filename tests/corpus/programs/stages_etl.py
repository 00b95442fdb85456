"""ETL: each step turns the rows of the one before into new ones, which are then dropped."""
import time, numpy as np
def extract():
    rows = []
    for i in range(1200):
        rows.append(np.random.default_rng(i).random(600)); time.sleep(0.001)
    return rows
def transform(rows):
    out = []
    for r in rows:
        out.append(np.log1p(r)); time.sleep(0.001)
    return out
def features(rows):
    out = []
    for r in rows:
        out.append(np.concatenate([r, r[:10]])); time.sleep(0.001)
    return out
def main():
    data = extract()
    data = transform(data)
    data = features(data)
    print(np.mean([d.mean() for d in data]))
main()
