import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Meter:
    avg = 0.0
    def update(self, v): self.avg = 0.98 * self.avg + 0.02 * v
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)); opt = torch.optim.SGD(net.parameters(), 0.1); m, v = Meter(), Meter()
for step in range(1500):
    x = torch.randn(64, 128); out = net(x); loss = nn.functional.cross_entropy(out, x[:, :10].argmax(1)); opt.zero_grad(); loss.backward(); opt.step(); m.update(loss)
    if step % 5 == 0:
        x = torch.randn(64, 128); v.update(nn.functional.cross_entropy(net(x), x[:, :10].argmax(1)))
print(round(float(m.avg), 4), round(float(v.avg), 4))
