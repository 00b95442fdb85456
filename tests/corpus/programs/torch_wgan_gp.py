import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
G = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 196))
D = nn.Sequential(nn.Linear(196, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
og = torch.optim.Adam(G.parameters(), 1e-4, betas=(0.0, 0.9)); od = torch.optim.Adam(D.parameters(), 1e-4, betas=(0.0, 0.9))
def gp(real, fake):
    e = torch.rand(len(real), 1); x = (e * real + (1 - e) * fake).requires_grad_(True)
    g, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()
log = []
for it in range(150):
    for _ in range(3):
        real = torch.randn(64, 196).cumsum(1) / 10; fake = G(torch.randn(64, 32)).detach()
        loss = D(fake).mean() - D(real).mean() + 10 * gp(real, fake)
        od.zero_grad(); loss.backward(); od.step()
    lg = -D(G(torch.randn(64, 32))).mean(); og.zero_grad(); lg.backward(); og.step()
    log.append((loss.item(), lg.item()))
print(round(log[-1][0], 3), round(log[-1][1], 3))
