"""A forward hook collects the output of a layer for a look at it, and is never removed.

Fixed: The hook keeps the latest output only, without its graph.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "hook-keeps"
BECAUSE = "(a forward hook of 'features' (Sequential, local variable"
HELD_BY = (
    "list 'outputs' of Probe (a forward hook of 'features' (Sequential, local variable of "
    "main() at torch_hook_keeps.py)), with the autograd graph "
    "(MaxPool2DWithIndicesBackward0)"
)


class Probe:
    """Remembers what a module answers."""

    def __init__(self, module: nn.Module) -> None:
        self.outputs: list[torch.Tensor] = []
        module.register_forward_hook(self.hook)

    def hook(self, module: nn.Module, given: tuple[torch.Tensor], output: torch.Tensor) -> None:
        if FIXED:
            self.outputs[:] = [output.detach()]
        else:
            self.outputs.append(output)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    model = nn.Sequential(features, nn.Flatten(), nn.Linear(8 * 64, 4))
    Probe(features)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in repeat(800, fixed=1000, seconds=SETTLED_S):
        x, y = torch.randn(16, 1, 16, 16), torch.randint(4, (16,))
        logits = model(x)  # leaks here
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
