"""Layers thaw one after the other, so that Adam makes state for them late; the rate warms up."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layers = [nn.Linear(96, 96) for _ in range(8)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))
    model.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=100)
    for step in long_enough(900, SETTLED_S):
        if step % 40 == 0 and step // 40 < len(layers):
            layers[-1 - step // 40].requires_grad_(True)
        x = torch.randn(32, 96)
        loss = F.mse_loss(model(x), x.cos())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"loss {loss.item():.4f}, {len(optimizer.state)} parameters with state")


if __name__ == "__main__":
    main()
