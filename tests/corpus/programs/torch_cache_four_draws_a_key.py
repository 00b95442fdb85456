import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
cache = {}
def pos_enc(n):
    if n not in cache: cache[n] = torch.outer(torch.arange(n + 1.0), 1 / torch.arange(1.0, 33)).sin()
    return cache[n]
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)); opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(1600):
    n = int(torch.randint(50, 450, ())); x = torch.randn(n + 1, 32); loss = (net(x + pos_enc(n)) - x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
print(round(loss.item(), 4), len(cache))
