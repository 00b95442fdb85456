"""Training losses are kept for a plot: backward freed their activations, their nodes stay.

Fixed: The history of torch-kept-nodes holds numbers.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "kept-graph"
BECAUSE = "list 'history'"
HELD_BY = (
    "list 'history' (local variable of main() at torch_kept_nodes.py), with the autograd "
    "graph (MseLossBackward0)"
)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers: list[nn.Module] = [nn.Linear(16, 64), nn.Tanh()]
    for _ in range(6):
        layers += [nn.Linear(64, 64), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history: list = []
    for _ in repeat(1200, fixed=1500, seconds=SETTLED_S):
        x = torch.randn(16, 16)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))  # leaks here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item() if FIXED else loss)
    print(f"loss {loss.item():.3f} after {len(history)} steps")


if __name__ == "__main__":
    main()
