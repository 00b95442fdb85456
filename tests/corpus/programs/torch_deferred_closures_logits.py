"""Train on a stream in one long epoch with a small event bus that defers metric work to the epoch end."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(28)


class Bus:
    def __init__(self):
        self.deferred = []

    def at_epoch_end(self, fn):
        self.deferred.append(fn)

    def epoch_end(self):
        done, self.deferred = [f() for f in self.deferred], []
        return sum(done)


def stream(n):
    g = torch.Generator().manual_seed(3)
    for _ in range(n):
        x = torch.randn(64, 40, generator=g)
        yield x, (x[:, :6].sum(1).abs() * 10).long() % 200


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(40, 96), nn.ReLU()), nn.Linear(96, 200)

    def forward(self, x):
        return self.head(self.body(x))


def training_step(model, x, y, bus):
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    kept = logits.detach()
    bus.at_epoch_end(lambda: (kept.argmax(1) == y).sum().item())
    return loss


def main():
    model, bus = Model(), Bus()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))
    for x, y in stream(400):
        loss = training_step(model, x, y, bus)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        time.sleep(0.017)
    print("loss", loss.item(), "hits", bus.epoch_end())


if __name__ == "__main__":
    main()
