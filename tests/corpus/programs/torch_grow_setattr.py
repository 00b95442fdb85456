import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self, w=128):
        super().__init__(); self.depth = 1; self.block0 = nn.Sequential(nn.Linear(w, w), nn.BatchNorm1d(w), nn.ReLU()); self.head = nn.Linear(w, 1)
    def grow(self, w=128):
        block = nn.Sequential(nn.Linear(w, w), nn.BatchNorm1d(w), nn.ReLU())
        setattr(self, f"block{self.depth}", block); self.depth += 1
        return block
    def forward(self, x):
        for i in range(self.depth): x = x + getattr(self, f"block{i}")(x)
        return self.head(x)
def train():
    net = Net(); opt = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(1500):
        if step % 150 == 149: opt.add_param_group({"params": list(net.grow().parameters())})
        x = torch.randn(32, 128); loss = ((net(x) - x[:, :1]) ** 2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    print(net.depth, loss.item())
train()
