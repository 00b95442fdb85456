import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)); X = torch.randn(4000, 64); y = X[:, :4].prod(1, keepdim=True)
def widen(net, w):
    old = net[0]; a, b = nn.Linear(64, w), nn.Linear(w, 1)
    with torch.no_grad(): a.weight[: old.out_features].copy_(old.weight); b.weight[:, : old.out_features].copy_(net[2].weight)
    net[0], net[2] = a, b
for epoch in range(24):
    if epoch in (4, 8, 12, 16): widen(net, net[0].out_features * 2)
    if epoch % 6 == 5:
        for m in net:
            if hasattr(m, "reset_parameters"): m.reset_parameters()
    opt = torch.optim.Adam(net.parameters(), 1e-3); sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=60)
    for i in range(60):
        b = torch.randint(0, 4000, (64,)); loss = ((net(X[b]) - y[b]) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step(); sched.step()
print(round(loss.item(), 4), net[0].out_features)
