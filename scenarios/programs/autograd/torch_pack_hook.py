"""A hook of saved tensors packs each tensor in an object, which keeps the tensor and so its graph.

The loss of a validation has no backward pass, which would let go of what was packed.

Fixed: The hook packs the tensor without its graph.
"""

from typing import NamedTuple

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "hook-cycle"
BECAUSE = "nodes hold attribute 'tensor' of Packed (a Packed)"


class Packed:
    """What the hook makes of a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.detach() if FIXED else tensor


class Batch(NamedTuple):
    """Inputs and what they should give."""

    x: torch.Tensor
    y: torch.Tensor


def batch() -> Batch:
    x = torch.randn(32, 16)
    return Batch(x, x.sin())


def validate(model: nn.Module, given: Batch) -> float:
    """The loss, while a hook counts what would be saved for a backward pass."""
    with torch.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.tensor):
        return (model(given.x) - given.y).square().mean().item()  # leaks here


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 128), nn.Sigmoid(), nn.Linear(128, 16), nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in repeat(800, fixed=1000, seconds=SETTLED_S):
        given = batch()
        loss = (model(given.x) - given.y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        validated = validate(model, given)
    print(f"loss {validated:.3f}")


if __name__ == "__main__":
    main()
