import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
# large slow steps: a block after every sixth step, the last one in the last steps
class Net(nn.Module):
    def __init__(self): super().__init__(); self.blocks = nn.ModuleList([self.block()])
    def block(self): return nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    def forward(self, x):
        for b in self.blocks: x = x + b(x)
        return x
net = Net(); opt = torch.optim.Adam(net.parameters(), 1e-4)
for step in range(54):
    if step % 6 == 5: b = net.block(); net.blocks.append(b); opt.add_param_group({"params": b.parameters()})
    x = torch.randn(256, 512)
    for micro in range(2):
        loss = F.mse_loss(net(x), x) / 2; loss.backward()
    opt.step(); opt.zero_grad()
print(len(net.blocks))
