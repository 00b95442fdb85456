"""A network gets a layer more every fifty steps until it has eight, as its schedule says."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layers = nn.ModuleList([nn.Linear(64, 64)])
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for step in long_enough(1200, SETTLED_S):
        if step and step % 50 == 0 and len(layers) < 8:
            layers.append(nn.Linear(64, 64))
            optimizer.add_param_group({"params": layers[-1].parameters()})
        x = torch.randn(32, 64)
        h = x
        for layer in layers:
            h = h + torch.tanh(layer(h))
        loss = F.mse_loss(h, x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f} with {len(layers)} layers")


if __name__ == "__main__":
    main()
