import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
# every fold's model is kept: 14 of them, each with its optimizer
kept = []
def fold(k):
    net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(60):
        loss = F.cross_entropy(net(torch.randn(32, 128)), torch.randint(0, 2, (32,))); opt.zero_grad(); loss.backward(); opt.step()
    kept.append((net, opt))
for k in range(40): fold(k)
