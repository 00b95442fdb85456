import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Meter:
    def __init__(s): s.total, s.n = 0.0, 0
    def update(s, v): s.total = s.total + v; s.n += 1
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)); opt = torch.optim.SGD(net.parameters(), 0.1); val = Meter()
for step in range(1000):
    x = torch.randn(64, 128); out = net(x); loss = nn.functional.cross_entropy(out, x[:, :10].argmax(1)); opt.zero_grad(); loss.backward(); opt.step()
    if step % 4 == 0:
        xv = torch.randn(64, 128); pv = net(xv)
        val.update(nn.functional.cross_entropy(pv, xv[:, :10].argmax(1)))
print(round(float(val.total), 3))
