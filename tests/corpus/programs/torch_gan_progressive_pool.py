"""GAN with spectral norm, a capped history pool of generated images and three stages of progressive growing."""
import random
import time
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

torch.set_num_threads(1)
torch.manual_seed(14)
random.seed(14)


class Pool:
    def __init__(self, cap):
        self.cap, self.images = cap, []

    def exchange(self, batch):
        out = []
        for img in batch.detach():
            if len(self.images) < self.cap:
                self.images.append(img.clone())
                out.append(img)
            elif random.random() < 0.5:
                i = random.randrange(self.cap)
                out.append(self.images[i])
                self.images[i] = img.clone()
            else:
                out.append(img)
        return torch.stack(out)


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 16 * 8 * 8)
        self.stages = nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1)])
        self.rgb = nn.Conv2d(16, 3, 1)

    def grow(self):
        self.stages.append(nn.Conv2d(16, 16, 3, padding=1))

    def forward(self, z):
        h = self.fc(z).view(-1, 16, 8, 8)
        for i, s in enumerate(self.stages):
            h = F.leaky_relu(s(F.interpolate(h, scale_factor=2) if i else h))
        return self.rgb(h).tanh()


def disc():
    return nn.Sequential(spectral_norm(nn.Conv2d(3, 16, 3, stride=2, padding=1)), nn.LeakyReLU(0.2),
                         spectral_norm(nn.Conv2d(16, 16, 3, stride=2, padding=1)), nn.LeakyReLU(0.2),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 1))


def main():
    gen, dis = G(), disc()
    for stage, steps in enumerate([100, 100, 130]):
        if stage:
            gen.grow()
        size = 8 * 2 ** stage
        og = torch.optim.Adam(gen.parameters(), 2e-4, betas=(0.5, 0.99))
        od = torch.optim.Adam(dis.parameters(), 2e-4, betas=(0.5, 0.99))
        pool = Pool(400)
        for _ in range(steps):
            real = torch.rand(12, 3, 1, 1).expand(12, 3, size, size) * 2 - 1
            fake = gen(torch.randn(12, 32))
            d = F.softplus(-dis(real)).mean() + F.softplus(dis(pool.exchange(fake))).mean()
            od.zero_grad()
            d.backward()
            od.step()
            g = F.softplus(-dis(fake)).mean()
            og.zero_grad()
            g.backward()
            og.step()
            time.sleep(0.01)
        print(stage, size, d.item(), g.item())


if __name__ == "__main__":
    main()
