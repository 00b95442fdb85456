"""Train on noisy data where a non-finite check raises now and then, and errors are collected for a final report."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(25)


class BadBatch(RuntimeError):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(48, 160), nn.Linear(160, 2)

    def forward(self, x):
        h = torch.relu(self.a(x))
        out = self.b(h)
        if not torch.isfinite(out).all():
            raise BadBatch(f"non-finite output, batch mean {x.nanmean().item():.3f}")
        return out


def load(step):
    x = torch.randn(64, 48)
    if step % 3 == 1:
        x[step % 64, 5] = float("nan")
    return x, (x[:, 0] > 0).long()


def train_step(net, opt, step):
    x, y = load(step)
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    net = Net()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    failures, last = [], 0.0
    for step in range(430):
        try:
            last = train_step(net, opt, step)
        except BadBatch as e:
            failures.append((step, e))
        time.sleep(0.016)
    print("loss", last, "failed", len(failures), "e.g.", failures[0][1])


if __name__ == "__main__":
    main()
