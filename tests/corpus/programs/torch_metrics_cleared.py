import numpy as np, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Collector:
    def __init__(self): self.preds, self.targets = [], []
    def update(self, p, t): self.preds.append(p.detach().cpu()); self.targets.append(t)
    def compute(self):
        p = torch.cat(self.preds).numpy(); t = torch.cat(self.targets).numpy()
        order = np.argsort(-p[:, 1]); tt = (t[order] == 1)
        return float(np.cumsum(tt).sum() / max(1, tt.sum()) / len(tt))
    def reset(self): self.preds.clear(); self.targets.clear()
net = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 100)); opt = torch.optim.AdamW(net.parameters(), 1e-3)
metric, hist = Collector(), []
X = torch.randn(20000, 128); Y = (X[:, :100].argmax(1))
for epoch in range(5):
    perm = torch.randperm(len(X))
    for i in range(0, len(X), 200):
        b = perm[i:i + 200]; out = net(X[b]); loss = nn.functional.cross_entropy(out, Y[b])
        opt.zero_grad(); loss.backward(); opt.step(); metric.update(out, Y[b])
    hist.append(metric.compute()); metric.reset()
print([round(h, 3) for h in hist])
