import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 100))
@torch.no_grad()
def evaluate(n):
    out = []
    for i in range(n): out.append(net(torch.randn(128, 128)))
    return torch.cat(out).mean().item()
r = evaluate(700)
for i in range(60): r += (torch.randn(128, 128) @ torch.ones(128, 128)).mean().item()
import gc; print(round(r, 3), sum(1 for o in gc.get_objects() if type(o) is torch.Tensor))
