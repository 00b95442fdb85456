"""Anomaly mode was left on after a hunt for NaN: each node of each kept loss keeps its traceback.

Fixed: Anomaly mode is off, and the history holds numbers.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "kept-graph"
HELD_BY = (
    "list 'running' (local variable of main() at torch_anomaly_mode.py), with the "
    "autograd graph (SmoothL1LossBackward0)"
)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(not FIXED)
    model = nn.Sequential(
        nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )
    weights = list(model.parameters())
    running: list = []
    for _ in repeat(1500, fixed=1500, seconds=SETTLED_S):
        x = torch.randn(16, 8)
        loss = F.smooth_l1_loss(model(x), x.prod(1, keepdim=True))  # leaks here
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, grad in zip(weights, grads, strict=True):
                weight -= 0.01 * grad
        running.append(loss.item() if FIXED else loss)
    print(f"loss {loss.item():.3f} after {len(running)} steps")


if __name__ == "__main__":
    main()
