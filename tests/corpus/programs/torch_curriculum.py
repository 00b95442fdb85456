import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Tagger(nn.Module):
    def __init__(self): super().__init__(); self.e = nn.Embedding(200, 64); self.l = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True); self.o = nn.Linear(64, 200); self.mask = torch.zeros(0, 0)
    def forward(self, x):
        n = x.shape[1]
        if len(self.mask) < n: self.mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        return self.o(self.l(self.e(x), src_mask=self.mask[:n, :n]))
net = Tagger(); opt = torch.optim.AdamW(net.parameters(), 1e-3); best = 9.0
for step in range(160):
    n = 8 + step; x = torch.randint(0, 200, (8, n + 1)); loss = nn.functional.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, :-1].flatten())
    opt.zero_grad(); loss.backward(); opt.step(); best = min(best, loss.item())
print(round(best, 3))
