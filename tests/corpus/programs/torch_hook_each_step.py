"""Train a classifier while a drift probe compares hidden features with a recent reference through a forward hook."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(22)


class DriftProbe:
    def __init__(self, layer):
        self.layer, self.drift, self.active = layer, 0.0, None

    def refresh(self, feats):
        ref = feats.detach().clone()
        self.active = id(ref)

        def hook(_m, _i, out):
            if self.active == id(ref):
                self.drift = (out.detach().mean(0) - ref.mean(0)).norm().item()

        self.layer.register_forward_hook(hook)


def main():
    body = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 96), nn.ReLU())
    head = nn.Linear(96, 4)
    probe = DriftProbe(body[2])
    opt = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-3)
    W = torch.randn(20, 4)
    for step in range(420):
        x = torch.randn(96, 20)
        y = (x @ W).argmax(1)
        h = body(x)
        loss = nn.functional.cross_entropy(head(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 0:
            probe.refresh(h)
        time.sleep(0.016)
    print("loss", loss.item(), "drift", probe.drift)


if __name__ == "__main__":
    main()
