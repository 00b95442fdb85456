"""The gradients of a sparse embedding are kept, each with its indices and values.

Fixed: What is kept of each is its norm.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "cache-only-grows"
BECAUSE = "list 'gradients' (local variable of main()"
HELD_BY = (
    "list 'gradients' (local variable of main() at torch_sparse_kept.py) through a SparseTensor"
)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    words = nn.Embedding(4000, 64, sparse=True)
    head = nn.Linear(64, 8)
    optimizers = [torch.optim.SparseAdam(words.parameters()), torch.optim.Adam(head.parameters())]
    gradients: list[torch.Tensor | float] = []
    for _ in repeat(700, fixed=900, seconds=SETTLED_S):
        loss = F.cross_entropy(head(words(torch.randint(4000, (48,)))), torch.randint(8, (48,)))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()  # leaks here
        gradient = words.weight.grad
        gradients.append(gradient.coalesce().values().norm().item() if FIXED else gradient)
        for optimizer in optimizers:
            optimizer.step()
    print(f"loss {loss.item():.3f}, {len(gradients)} gradients")


if __name__ == "__main__":
    main()
