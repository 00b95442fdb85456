"""A ResNet with one stage checkpointed; gradients of two small batches are added for each step."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from truth import take


class BasicBlock(nn.Module):
    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)
        )
        self.stage1 = nn.Sequential(BasicBlock(16, 16), BasicBlock(16, 16))
        self.stage2 = nn.Sequential(BasicBlock(16, 32, 2), BasicBlock(32, 32))
        self.stage3 = nn.Sequential(BasicBlock(32, 64, 2), BasicBlock(64, 64))
        self.fc = nn.Linear(64, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stage1(self.stem(x))
        x = checkpoint(self.stage2, x, use_reentrant=False)
        x = self.stage3(x).mean(dim=(2, 3))
        return self.fc(x)


def main() -> None:
    torch.manual_seed(2)
    torch.set_num_threads(1)
    images, labels = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    model = ResNet(10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    of = {"modules": [model], "optimizers": [optimizer]}
    micro = 8
    for step in range(4):
        optimizer.zero_grad()
        total = 0.0
        for part in range(2):
            first = (2 * step + part) * micro % 64
            x, y = images[first : first + micro], labels[first : first + micro]
            loss = F.cross_entropy(model(x), y) / 2
            if step == 2:
                take("forward", part, roots=[loss], inputs=[x, y], **of)
            loss.backward()
            if step == 2:
                take("backward", part, roots=[loss], inputs=[x, y], **of)
            total += loss.item()
        optimizer.step()
        if step == 2:
            take("step", step, roots=[loss], inputs=[x, y], **of)
        print(f"step {step} loss {total:.9g}")


if __name__ == "__main__":
    main()
