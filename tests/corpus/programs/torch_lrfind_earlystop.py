import copy, math, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))
X = torch.randn(6000, 100); y = X[:, :3].prod(1, keepdim=True) + 0.1 * torch.randn(6000, 1); Xt, yt, Xv, yv = X[:5000], y[:5000], X[5000:], y[5000:]
def batches():
    for b in torch.randperm(5000).split(100): yield Xt[b], yt[b]
def find_lr():
    saved = copy.deepcopy(net.state_dict()); opt = torch.optim.Adam(net.parameters(), 1e-6); lr, hist = 1e-6, []
    for xb, yb in batches():
        for g in opt.param_groups: g["lr"] = lr
        loss = ((net(xb) - yb) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step(); hist.append((lr, loss.item())); lr *= 1.3
        if not math.isfinite(hist[-1][1]): break
    net.load_state_dict(saved)
    return min(hist, key=lambda t: t[1])[0] / 10
lr = find_lr(); opt = torch.optim.Adam(net.parameters(), min(lr, 1e-3)); best, best_state, bad = 1e9, None, 0
for epoch in range(20):
    net.train()
    for xb, yb in batches():
        loss = ((net(xb) - yb) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad(): v = ((net(Xv) - yv) ** 2).mean().item()
    if v < best: best, best_state, bad = v, copy.deepcopy(net.state_dict()), 0
    else: bad += 1
    if bad > 30: break
net.load_state_dict(best_state); print("best", round(best, 4), epoch)
