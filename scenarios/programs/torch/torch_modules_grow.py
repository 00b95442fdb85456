"""An adapter for each domain is made on demand, but the key is a tensor: each one is a new key.

Fixed: The key of torch-modules-grow is a number.
"""

from typing import Any

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "modules-grow"
BECAUSE = "parameters in 'adapters' of 'model' (Adapted, local"


class Adapted(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.trunk = nn.Linear(width, width)
        self.adapters = nn.ModuleList()
        self.places: dict[Any, int] = {}

    def forward(self, x: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        key = int(domain) if FIXED else domain
        if key not in self.places:
            self.places[key] = len(self.adapters)
            layers = nn.Linear(self.width, self.width), nn.BatchNorm1d(self.width)  # leaks here
            self.adapters.append(nn.Sequential(*layers))
        return self.adapters[self.places[key]](torch.tanh(self.trunk(x)))


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Adapted(64)
    optimizer = torch.optim.SGD(model.trunk.parameters(), lr=0.05)
    for _ in repeat(900, fixed=1200, seconds=SETTLED_S):
        x, domain = torch.randn(16, 64), torch.randint(5, ())
        loss = F.mse_loss(model(x, domain), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}, {len(model.adapters)} adapters")


if __name__ == "__main__":
    main()
