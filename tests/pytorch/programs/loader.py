"""Training on batches that two worker processes of a DataLoader put together."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from truth import take


class Spirals(Dataset[tuple[torch.Tensor, int]]):
    """Noisy points along spirals, each as a small picture that is drawn when it is asked for."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        chance = torch.Generator().manual_seed(number)
        turn = torch.linspace(0, 6.28, 200) + 2.1 * (number % 3)
        along = torch.linspace(2, 14, 200)
        x = (16 + along * turn.cos() + torch.randn(200, generator=chance) * 0.3).long().clamp(0, 31)
        y = (16 + along * turn.sin() + torch.randn(200, generator=chance) * 0.3).long().clamp(0, 31)
        picture = torch.zeros(1, 32, 32)
        picture[0, y, x] = 1.0
        return picture, number % 3


def main() -> None:
    torch.manual_seed(8)
    torch.set_num_threads(1)
    loader = DataLoader(
        Spirals(), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, 2, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 64, 128),
        nn.ReLU(),
        nn.Linear(128, 3),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    of = {"modules": [model], "optimizers": [optimizer]}
    step = 0
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if step == 7:  # the last batch of the epoch: no worker is ahead
                take("forward", step, roots=[loss], inputs=[x, y], **of)
            loss.backward()
            if step == 7:
                take("backward", step, roots=[loss], inputs=[x, y], **of)
            optimizer.step()
            if step == 7:
                take("step", step, roots=[loss], inputs=[x, y], **of)
            step += 1
        print(f"epoch {epoch} loss {loss.item():.9g}")


if __name__ == "__main__":
    main()
