import numpy as np, pandas as pd, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)
df = pd.DataFrame({"u": rng.integers(0, 5000, 20000), "i": rng.integers(0, 2000, 20000), "r": rng.random(20000).astype("f4")})
U, I = nn.Embedding(5000, 32, sparse=True), nn.Embedding(2000, 32, sparse=True); opt = torch.optim.SparseAdam([*U.parameters(), *I.parameters()], 0.01); hist = []
for epoch in range(4):
    d = df.sample(frac=1, random_state=epoch); agg = d.groupby("u")["r"].mean()
    for s in range(0, len(d), 256):
        b = d.iloc[s:s + 256]; u, i, r = torch.from_numpy(b["u"].to_numpy()), torch.from_numpy(b["i"].to_numpy()), torch.from_numpy(b["r"].to_numpy())
        loss = ((U(u) * I(i)).sum(1) - r).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    hist.append((loss.item(), float(agg.mean())))
print([round(h[0], 2) for h in hist])
