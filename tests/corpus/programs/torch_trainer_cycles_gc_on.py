import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Callback:
    def __init__(s, t): s.trainer = t
class Trainer:
    def __init__(s): s.net = nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 10)); s.opt = torch.optim.Adam(s.net.parameters(), 1e-2); s.cbs = [Callback(s), Callback(s)]
    def fit(s, X, y):
        for i in range(0, len(X), 100): l = nn.functional.cross_entropy(s.net(X[i:i + 100]), y[i:i + 100]); s.opt.zero_grad(); l.backward(); s.opt.step()
        return l.item()
X = torch.randn(1000, 64); y = X[:, :10].argmax(1); r = [Trainer().fit(X, y) for _ in range(150)]
print(round(sum(r) / 150, 4))
