import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self): super().__init__(); self.body = nn.Linear(64, 64); self.head = nn.Linear(64, 10)
    def forward(self, x): return self.head(torch.relu(self.body(x)))
class Learner:
    def __init__(self): self.net = Net(); self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
    def new_head(self, k):
        self.net.head = nn.Linear(64, k)
        self.opt.add_param_group({"params": self.net.head.parameters()})
    def fit(self, n, k):
        for _ in range(n):
            loss = F.cross_entropy(self.net(torch.randn(32, 64)), torch.randint(0, k, (32,))); self.opt.zero_grad(); loss.backward(); self.opt.step()
def main():
    le = Learner()
    for t in range(120): le.new_head(150); le.fit(8, 150)
main()
