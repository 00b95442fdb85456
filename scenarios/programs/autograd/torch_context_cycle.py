"""A custom Function remembers in its context what the network made of its output.

Fixed: What it remembers has no graph.
"""

from typing import Any

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "hook-cycle"
BECAUSE = "Autograd nodes hold dict 'results' of ScaledBackward"


class Scaled(torch.autograd.Function):
    """The input, whose gradient is scaled by how large the result became."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, results: dict[str, torch.Tensor]) -> torch.Tensor:
        ctx.results = results
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient / (1 + ctx.results["y"].detach().abs().mean()), None


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    first, second = nn.Linear(64, 256), nn.Linear(256, 64)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    for _ in repeat(800, fixed=1000, seconds=SETTLED_S):
        x, results = torch.randn(16, 64), dict[str, torch.Tensor]()
        y = second(Scaled.apply(first(x), results))  # leaks here
        results["y"] = y.detach() if FIXED else y
        loss = (y - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
