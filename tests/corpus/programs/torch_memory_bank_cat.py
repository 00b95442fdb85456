import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
        self.bank = torch.empty(0, 64)
    def forward(self, a, b):
        za, zb = F.normalize(self.enc(a), dim=1), F.normalize(self.enc(b), dim=1)
        neg = za @ self.bank.T if len(self.bank) else za.new_zeros(len(za), 1)
        logits = torch.cat([(za * zb).sum(1, keepdim=True), neg[:, -2048:]], 1) / 0.1
        self.bank = torch.cat([self.bank, zb.detach()])
        return F.cross_entropy(logits, torch.zeros(len(za), dtype=torch.long))
net = Contrast(); opt = torch.optim.Adam(net.parameters(), 1e-3); tot = 0.0
for step in range(400):
    x = torch.randn(64, 256)
    loss = net(x, x + 0.2 * torch.randn_like(x)); opt.zero_grad(set_to_none=True); loss.backward(); opt.step(); tot += loss.item()
print("mean", round(tot / 400, 4), tuple(net.bank.shape))
