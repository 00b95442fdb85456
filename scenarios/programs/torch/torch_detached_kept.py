"""Outputs are detached before they are kept, which drops the graph and not the memory.

Fixed: A running mean of the outputs is kept.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list 'features' (local variable of main() at torch_detached_kept.py)"


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder = nn.Sequential(nn.Linear(48, 128), nn.ReLU())
    head = nn.Linear(128, 48)
    both = nn.ModuleList([encoder, head])
    optimizer = torch.optim.Adam(both.parameters(), lr=1e-3)
    features: list[torch.Tensor] = []
    mean = torch.zeros(128)
    for _ in repeat(900, fixed=900, seconds=SETTLED_S):
        x = torch.randn(64, 48)
        h = encoder(x)  # leaks here
        loss = F.mse_loss(head(h), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if FIXED:
            mean.lerp_(h.detach().mean(0), 0.01)
        else:
            features.append(h.detach())
    print(f"loss {loss.item():.3f}, {len(features)} outputs, mean {mean.mean().item():.3f}")


if __name__ == "__main__":
    main()
