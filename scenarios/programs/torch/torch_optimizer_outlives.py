"""One optimizer gets the head of each new task, and keeps those of tasks that are over.

Fixed: Each task has an optimizer of its own, which goes with it.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "optimizer-outlives-params"
BECAUSE = "of optimizer 'shared' (Adam, local"
HELD_BY = (
    "states of optimizer 'shared' (Adam, local variable of main() at torch_optimizer_outlives.py)"
)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trunk = nn.Sequential(nn.Linear(32, 128), nn.ReLU())
    shared = torch.optim.Adam(trunk.parameters(), lr=1e-3)
    for task in repeat(250, fixed=400, seconds=SETTLED_S):
        head = nn.Linear(128, 64)
        optimizers = [shared]
        if FIXED:
            optimizers.append(torch.optim.Adam(head.parameters(), lr=1e-3))
        else:
            shared.add_param_group({"params": head.parameters()})
        for _ in range(4):
            x = torch.randn(16, 32)
            loss = F.mse_loss(head(trunk(x)), x.repeat(1, 2) * (task % 5))
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()  # leaks here
    print(f"loss {loss.item():.3f}, {len(shared.param_groups)} groups")


if __name__ == "__main__":
    main()
