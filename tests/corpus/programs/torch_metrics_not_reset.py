import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Metric:
    def __init__(self): self.preds, self.targets = [], []
    def update(self, p, t): self.preds.append(p); self.targets.append(t)
    def compute(self): return (torch.cat(self.preds).argmax(1) == torch.cat(self.targets)).float().mean().item()
    def reset(self): self.preds, self.targets = [], []
class MetricCollection:
    def __init__(self, **m): self.metrics = m
    def update(self, p, t):
        for m in self.metrics.values(): m.update(p, t)
    def compute(self): return {k: m.compute() for k, m in self.metrics.items()}
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 50)); opt = torch.optim.SGD(net.parameters(), 0.1)
val = MetricCollection(acc=Metric())
def validate(Xv, Yv):
    net.eval()
    with torch.no_grad():
        for i in range(0, len(Xv), 100):
            p = net(Xv[i:i + 100]).softmax(-1)
            val.update(p, Yv[i:i + 100])
    net.train()
    return val.compute()
X = torch.randn(4000, 64); Y = X[:, :50].argmax(1); Xv, Yv = X[:2000], Y[:2000]
for epoch in range(30):
    for i in range(0, 4000, 100):
        loss = nn.functional.cross_entropy(net(X[i:i + 100]), Y[i:i + 100]); opt.zero_grad(); loss.backward(); opt.step()
    r = validate(Xv, Yv)
print({k: round(v, 3) for k, v in r.items()})
