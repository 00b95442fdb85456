import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)); opt = torch.optim.Adam(net.parameters(), 1e-3)
prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True); prof.__enter__()
for i in range(2500):
    x = torch.randn(16, 32); loss = (net(x) - x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
print(round(loss.item(), 4))
import os; os._exit(0) if os.environ.get("NOEXIT") else None
