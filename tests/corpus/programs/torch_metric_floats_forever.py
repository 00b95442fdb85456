"""Train a binary classifier with a ranking metric that stores every sample's score and label until it is reset."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(27)


class RankMetric:
    def __init__(self):
        self.reset()

    def reset(self):
        self.rows, self.n = [], 0

    def update(self, step, scores, labels):
        for s, l in zip(scores.tolist(), labels.tolist()):
            self.rows.append((step, s, l))
        self.n += len(scores)

    def recent(self, k=2000):
        rows = sorted(self.rows[-k:], key=lambda r: r[1])
        pos = sum(r[2] for r in rows)
        ranks = sum(i for i, r in enumerate(rows, 1) if r[2])
        return (ranks - pos * (pos + 1) / 2) / max(pos * (len(rows) - pos), 1)


def main():
    net = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    metric = RankMetric()
    w = torch.randn(30)
    for step in range(420):
        x = torch.randn(1024, 30)
        y = (x @ w > 0).float()
        out = net(x)[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        metric.update(step, out.detach(), y)
        if step % 60 == 59:
            print(step, round(metric.recent(), 4))
        time.sleep(0.014)


if __name__ == "__main__":
    main()
