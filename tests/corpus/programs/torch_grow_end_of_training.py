import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
# ends right after the last layer
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.layers = nn.ModuleList([nn.Linear(128, 128)]); self.out = nn.Linear(128, 8)
    def forward(self, x):
        for l in self.layers: x = x + torch.relu(l(x))
        return self.out(x)
def main():
    net = Net(); opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for stage in range(8):
        for step in range(200):
            x = torch.randn(32, 128); loss = F.cross_entropy(net(x), torch.randint(0, 8, (32,)))
            opt.zero_grad(); loss.backward(); opt.step()
        if stage < 7:
            net.layers.append(nn.Linear(128, 128)); opt.add_param_group({"params": net.layers[-1].parameters()})
    for _ in range(5):
        loss = net(torch.randn(8, 128)).sum(); opt.zero_grad(); loss.backward(); opt.step()
    print(len(net.layers))
main()
