"""A GAN with a gradient penalty: two networks, two optimizers, a gradient of a gradient."""

import torch
from torch import nn
from truth import take


def generator(noise: int, size: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(noise, 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Linear(256, 512),
        nn.BatchNorm1d(512),
        nn.ReLU(),
        nn.Linear(512, size),
        nn.Tanh(),
    )


def critic(size: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(size, 512),
        nn.LeakyReLU(0.2),
        nn.Linear(512, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 1),
    )


def penalty(d: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(d(between).sum(), between, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def main() -> None:
    torch.manual_seed(4)
    torch.set_num_threads(1)
    size, noise, batch = 256, 32, 64
    g, d = generator(noise, size), critic(size)
    of_g = torch.optim.Adam(g.parameters(), lr=1e-4, betas=(0.5, 0.9))
    of_d = torch.optim.Adam(d.parameters(), lr=1e-4, betas=(0.5, 0.9))
    of = {"modules": [g, d], "optimizers": [of_g, of_d]}
    for step in range(6):
        real = torch.sin(torch.linspace(0, 6, size) + torch.rand(batch, 1) * 6)
        with torch.no_grad():
            fake = g(torch.randn(batch, noise))
        loss_d = d(fake).mean() - d(real).mean() + 10 * penalty(d, real, fake)
        if step == 3:
            take("forward", 0, roots=[loss_d], inputs=[real, fake], **of)
        of_d.zero_grad()
        loss_d.backward()
        if step == 3:
            take("backward", 0, roots=[loss_d], inputs=[real, fake], **of)
        of_d.step()
        if step == 3:
            take("step", 0, roots=[loss_d], inputs=[real, fake], **of)

        z = torch.randn(batch, noise)
        loss_g = -d(g(z)).mean()
        if step == 3:
            take("forward", 1, roots=[loss_d, loss_g], inputs=[z, real, fake], **of)
        of_g.zero_grad()
        loss_g.backward()
        if step == 3:
            take("backward", 1, roots=[loss_d, loss_g], inputs=[z, real, fake], **of)
        of_g.step()
        if step == 3:
            take("step", 1, roots=[loss_d, loss_g], inputs=[z, real, fake], **of)
        print(f"step {step} critic {loss_d.item():.9g} generator {loss_g.item():.9g}")


if __name__ == "__main__":
    main()
