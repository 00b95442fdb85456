"""An evaluation keeps the hardest examples as views of batches in shared memory, a file each.

Fixed: A clone of the hardest example stays, and five of them at most.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED
from torch import nn
from torch.utils.data import DataLoader, Dataset

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "shared-memory-kept"
BECAUSE = "are in shared memory or mapped files"
HELD_BY = (
    "list 'hardest' (local variable of main() at torch_loader_batches.py) through item 1 of a tuple"
)


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 4800

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.full((1, 32, 32), number % 7 / 7.0), number % 7


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Pictures(), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 7))
    hardest: list[tuple[float, torch.Tensor]] = []
    for x, y in loader:  # leaks here
        losses = F.cross_entropy(model(x), y, reduction="none")
        worst = int(losses.argmax())
        if FIXED:
            hardest.append((losses[worst].item(), x[worst].clone()))
            hardest = sorted(hardest, key=lambda pair: -pair[0])[:5]
        else:
            hardest.append((losses[worst].item(), x[worst]))
    print(f"{len(hardest)} kept, the hardest with loss {max(loss for loss, _ in hardest):.3f}")


if __name__ == "__main__":
    main()
