"""Weights that no optimizer has: their gradients have a graph of their own and add up.

Fixed: The gradients of torch-gradients-never-cleared are dropped after each update.
"""

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "retained-graph"
BECAUSE = "it is run with create_graph=True at"


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 1))
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.001)
    for _ in repeat(400, fixed=900, seconds=SETTLED_S):
        x = torch.randn(16, 64)
        loss = model(x).pow(2).mean()
        loss.backward(create_graph=True)  # leaks here
        curvature = sum(weight.grad.detach().norm() for weight in weights)
        optimizer.step()
        optimizer.zero_grad()
        if FIXED:
            model.zero_grad()
    print(f"loss {loss.item():.4f} curvature {curvature:.4f}")


if __name__ == "__main__":
    main()
