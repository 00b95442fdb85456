"""Train an autoencoder on synthetic signals and keep one hardest example of each batch for a gallery."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(23)


def batch(n=64):
    phase = torch.rand(n, 1) * 6.28
    freq = 1 + 3 * torch.rand(n, 1)
    t = torch.linspace(0, 1, 256)
    clean = torch.sin(freq * t * 6.28 + phase)
    return torch.add(clean, torch.randn(n, 256), alpha=0.1)


def main():
    net = nn.Sequential(nn.Linear(256, 96), nn.ReLU(), nn.Linear(96, 12), nn.ReLU(), nn.Linear(12, 96), nn.ReLU(),
                        nn.Linear(96, 256))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    gallery = []
    for step in range(400):
        x = batch()
        rec = net(x)
        per = (rec - x).pow(2).mean(1)
        opt.zero_grad()
        per.mean().backward()
        opt.step()
        worst = int(per.argmax())
        gallery.append((step, per[worst].item(), x[worst].detach()))
        time.sleep(0.016)
    top = sorted(gallery, key=lambda g: -g[1])[:5]
    print([(g[0], round(g[1], 3)) for g in top])


if __name__ == "__main__":
    main()
