"""Run particle-filter episodes on a tracking task, each keeping its particle history for a backward smoothing pass."""
import time
from collections import deque
import torch

torch.set_num_threads(1)
torch.manual_seed(6)
N = 3000


def systematic(w):
    pos = (torch.arange(N) + torch.rand(1)) / N
    return torch.searchsorted(w.cumsum(0), pos).clamp_(max=N - 1)


def episode(length, lagged):
    p = torch.randn(N, 4)
    truth = torch.zeros(4)
    clouds, weights, err = [], [], 0.0
    for _ in range(length):
        truth = torch.cat([truth[:2] + truth[2:], truth[2:] * 0.95 + 0.1 * torch.randn(2)])
        obs = truth[:2] + 0.3 * torch.randn(2)
        p = torch.cat([p[:, :2] + p[:, 2:], p[:, 2:] * 0.95 + 0.15 * torch.randn(N, 2)], 1)
        w = torch.softmax(-((p[:, :2] - obs) ** 2).sum(1) / 0.18, 0)
        clouds.append(p)
        weights.append(w)
        lagged.append((p.clone(), w.clone()))
        if 1 / (w * w).sum() < N / 2:
            p = p[systematic(w)]
        err += ((w[:, None] * clouds[-1]).sum(0) - truth).norm().item()
        time.sleep(0.006)
    ws, smooth = weights[-1], []
    for c, w in zip(reversed(clouds), reversed(weights)):
        ws = 0.7 * ws + 0.3 * w
        smooth.append((ws[:, None] * c).sum(0))
    return err / length, torch.stack(smooth).std().item()


def main():
    lagged = deque(maxlen=300)
    for ep in range(8):
        e, s = episode(110, lagged)
        print(f"ep {ep} err {e:.3f} smooth {s:.3f}")


if __name__ == "__main__":
    main()
