"""The losses of an evaluation are kept as tensors, each with the activations of its graph.

Fixed: The evaluation runs without gradients and keeps numbers.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "kept-graph"
BECAUSE = "list 'losses' (local variable of evaluate()"


def evaluate(model: nn.Module, steps: int) -> list[float]:
    losses: list = []
    with torch.set_grad_enabled(not FIXED):
        for _ in repeat(steps, fixed=2 * steps, seconds=SETTLED_S):
            x, y = torch.randn(32, 64), torch.randint(10, (32,))
            logits = model(x)  # leaks here
            loss = F.cross_entropy(logits, y)
            losses.append(loss.item() if FIXED else loss)
    return [loss if FIXED else loss.item() for loss in losses]


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    losses = evaluate(model, 1500)
    print(f"mean loss {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
