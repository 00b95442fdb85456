import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Extractor:
    def __init__(self, net): self.net, self.feats = net, {}
    def attach(self):
        for name, m in self.net.named_modules():
            if isinstance(m, nn.Conv2d):
                m.register_forward_hook(lambda mod, inp, out, name=name: self.feats.setdefault(name, []).append(out.detach()))
    @torch.no_grad()
    def extract(self, x):
        return self.net(x).mean().item()
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
ex = Extractor(net); ex.attach(); s = 0.0
for i in range(250):
    s += ex.extract(torch.randn(8, 3, 32, 32))
print(round(s, 4))
