"""Two workers of a DataLoader bring batches in shared memory, which are used and dropped."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

NEEDS = "torch"
OUTCOME = "stable"


class Waves(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 1600

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.sin(torch.arange(1024) * (1 + number % 5) / 100), number % 5


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(Waves(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(3):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
