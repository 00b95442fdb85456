"""Each worker of a DataLoader keeps every picture that it was asked for, in its own dataset.

Fixed: Each worker keeps sixty-four at most.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED
from torch import nn
from torch.utils.data import DataLoader, Dataset

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "worker-grows"


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self) -> None:
        self.cache: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        if number not in self.cache:
            self.cache[number] = torch.full((1024,), number % 7 / 7.0)  # leaks here
            if FIXED and len(self.cache) > 64:
                del self.cache[next(iter(self.cache))]
        return self.cache.get(number, torch.zeros(1024)), number % 7


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Pictures(), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 7))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
