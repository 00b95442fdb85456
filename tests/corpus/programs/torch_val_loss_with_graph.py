"""Train a regressor and track a smoothed validation curve after each few steps."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(20)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(32, 128)
        self.mid = nn.Linear(128, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        h = torch.tanh(self.mid(h))
        return self.out(h)


class Curve:
    def __init__(self):
        self.value = None

    def update(self, v):
        self.value = v if self.value is None else 0.95 * self.value + 0.05 * v.sqrt()


def main():
    X = torch.randn(3000, 32)
    y = X[:, :3].sum(1, keepdim=True).sin()
    net, curve = Net(), Curve()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(420):
        idx = torch.randint(0, 2500, (128,))
        loss = (net(X[idx]) - y[idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 0:
            vi = torch.randint(2500, 3000, (128,))
            diff = net(X[vi]) - y[vi]
            curve.update(diff.pow(2).mean())
        if step % 100 == 0:
            print(step, float(curve.value))
        time.sleep(0.016)


if __name__ == "__main__":
    main()
