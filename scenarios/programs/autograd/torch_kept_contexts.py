"""Contexts of an autograd function are collected for statistics, with what each saved.

Fixed: The mean of what it saves is collected.
"""

from typing import Any

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "kept-graph"
BECAUSE = "900 contexts GateBackward, and about as many items in"


class Gate(torch.autograd.Function):
    seen: list[Any] = []

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        Gate.seen.append(float(x.mean()) if FIXED else ctx)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grads[0] * s * (1 + x * (1 - s))


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net, total = nn.Linear(64, 64), 0.0
    judge = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 64))
    for _ in repeat(900, fixed=900, seconds=SETTLED_S):
        h = net(torch.randn(32, 64))  # leaks here
        gated = Gate.apply(h).detach()
        with torch.no_grad():
            total += float(judge(gated).mean())
    print(f"{total:.3f} of {len(Gate.seen)}")


if __name__ == "__main__":
    main()
