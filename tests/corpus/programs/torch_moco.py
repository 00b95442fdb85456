import copy, torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
class MoCo(nn.Module):
    def __init__(self, K=4096, dim=64, m=0.99, T=0.2):
        super().__init__()
        self.m, self.T, self.K = m, T, K
        self.enc_q = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, dim))
        self.enc_k = copy.deepcopy(self.enc_q)
        for p in self.enc_k.parameters(): p.requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0)); self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))
    @torch.no_grad()
    def momentum(self):
        for a, b in zip(self.enc_q.parameters(), self.enc_k.parameters()): b.mul_(self.m).add_(a, alpha=1 - self.m)
    @torch.no_grad()
    def enqueue(self, k):
        p = int(self.ptr); self.queue[:, p:p + k.shape[0]] = k.T; self.ptr[0] = (p + k.shape[0]) % self.K
    def forward(self, a, b):
        q = F.normalize(self.enc_q(a), dim=1)
        with torch.no_grad():
            self.momentum(); k = F.normalize(self.enc_k(b), dim=1)
        lp = (q * k).sum(1, keepdim=True); ln = q @ self.queue.clone().detach()
        logits = torch.cat([lp, ln], 1) / self.T
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
net = MoCo(); opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.03, momentum=0.9)
for step in range(200):
    x = torch.randn(32, 3, 32, 32)
    loss = net(x + 0.1 * torch.randn_like(x), x.flip(-1)); opt.zero_grad(); loss.backward(); opt.step()
print("loss", round(loss.item(), 4))
