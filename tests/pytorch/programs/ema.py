"""A copy of the network follows it as an exponential moving average and is the one evaluated."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from truth import take


class EMA:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for mean, now in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(now, 1 - self.decay)
        for mean, now in zip(self.model.buffers(), model.buffers(), strict=True):
            mean.copy_(now)


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1),
        nn.BatchNorm2d(32),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, 1, 1),
        nn.BatchNorm2d(64),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 36, 128),
        nn.SiLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 5),
    )


def main() -> None:
    torch.manual_seed(10)
    torch.set_num_threads(1)
    images, labels = torch.randn(160, 3, 24, 24), torch.arange(160) % 5
    images += labels.float().view(-1, 1, 1, 1) / 5
    model = network()
    ema = EMA(model, 0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    of = {"modules": [model, ema.model], "optimizers": [optimizer]}
    for step in range(8):
        x, y = images[step % 5 * 32 :][:32], labels[step % 5 * 32 :][:32]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        if step == 4:
            take("forward", step, roots=[loss], inputs=[x, y], **of)
        loss.backward()
        if step == 4:
            take("backward", step, roots=[loss], inputs=[x, y], **of)
        optimizer.step()
        ema.update(model)
        if step == 4:
            take("step", step, roots=[loss], inputs=[x, y], **of)
        with torch.inference_mode():
            right = (ema.model(x).argmax(1) == y).float().mean()
        print(f"step {step} loss {loss.item():.9g} mean network right {right.item():.9g}")


if __name__ == "__main__":
    main()
