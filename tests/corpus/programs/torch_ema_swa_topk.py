"""Train an MLP with an EMA copy, an SWA average that starts late, and a heap of the best five checkpoints."""
import copy
import heapq
import time
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, SWALR, get_ema_multi_avg_fn

torch.set_num_threads(1)
torch.manual_seed(2)


class TopK:
    def __init__(self, k):
        self.k, self.heap, self.n = k, [], 0

    def offer(self, score, model, opt):
        if len(self.heap) == self.k and score <= self.heap[0][0]:
            return
        state = {"model": {k: v.detach().clone() for k, v in model.state_dict().items()},
                 "opt": copy.deepcopy(opt.state_dict())}
        self.n += 1
        item = (score, self.n, state)
        if len(self.heap) < self.k:
            heapq.heappush(self.heap, item)
        else:
            heapq.heapreplace(self.heap, item)


def main():
    X = torch.randn(4000, 64)
    y = (X[:, :8].sin().sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 2))
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    swa = None
    opt = torch.optim.Adam(model.parameters(), 3e-4)
    top = TopK(5)
    epochs, steps = 24, 25
    for ep in range(epochs):
        perm = torch.randperm(3500)
        for i in range(steps):
            idx = perm[i * 128:(i + 1) * 128]
            loss = nn.functional.cross_entropy(model(X[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update_parameters(model)
            time.sleep(0.009)
        if ep >= 16:
            if swa is None:
                swa, sched = AveragedModel(model), SWALR(opt, swa_lr=1e-4)
            swa.update_parameters(model)
            sched.step()
        with torch.no_grad():
            acc = (ema(X[3500:]).argmax(1) == y[3500:]).float().mean().item()
        top.offer(acc, model, opt)
    print("best", max(h[0] for h in top.heap))


if __name__ == "__main__":
    main()
