import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48)); cnet = torch.compile(net, backend="eager", dynamic=True); opt = torch.optim.AdamW(net.parameters(), 1e-3)
@torch.jit.script
def mse(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor: return (a - b).pow(2).mean()
for i in range(400):
    x = torch.randn(int(torch.randint(8, 64, ())), 48); loss = mse(cnet(x), x); opt.zero_grad(); loss.backward(); opt.step()
print(round(loss.item(), 3))
