"""A network gets a block more with each stage until the end, with states of its optimizer."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"

STAGES = 10


class Growing(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.stages = nn.ModuleList()
        self.head = nn.Linear(width, 1)

    def grow(self) -> nn.Module:
        stage = nn.Sequential(nn.Linear(self.width, self.width), nn.BatchNorm1d(self.width))
        self.stages.append(stage)
        return stage

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            x = x + torch.relu(stage(x))
        return self.head(x)


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Growing(96)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STAGES):
        optimizer.add_param_group({"params": model.grow().parameters()})
        for _ in long_enough(40, SETTLED_S / STAGES):
            x = torch.randn(32, 96)
            loss = F.mse_loss(model(x), x[:, :1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.3f} with {len(model.stages)} stages")


if __name__ == "__main__":
    main()
