"""A running sum of losses keeps the graph of every step: its nodes, as backward passes have run.

Fixed: What torch-running-loss adds up are numbers.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "graph-chain-grows"
HELD_BY = "attribute 'total' of Meter (local variable 'meter' of main() at torch_running_loss.py)"


class Meter:
    def __init__(self) -> None:
        self.total: torch.Tensor | float = 0.0

    def add(self, loss: torch.Tensor) -> None:
        self.total = self.total + (loss.item() if FIXED else loss)  # leaks here


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(16, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    meter = Meter()
    for _ in repeat(6000, fixed=2500, seconds=SETTLED_S):
        x = torch.randn(16, 16)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.add(loss)
    print(f"loss {float(meter.total):.3f}")


if __name__ == "__main__":
    main()
