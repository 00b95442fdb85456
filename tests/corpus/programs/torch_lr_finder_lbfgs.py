"""Find a learning rate with a sweep, train with Adam and accumulation, then polish with LBFGS closures on a growing history."""
import copy
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(8)


def lr_find(model, X, y, n=80):
    backup = copy.deepcopy(model.state_dict())
    opt = torch.optim.SGD(model.parameters(), 1e-5)
    curve, best = [], None
    for i in range(n):
        lr = 1e-5 * (1e5 ** (i / n))
        opt.param_groups[0]["lr"] = lr
        idx = torch.randint(0, len(X), (128,))
        loss = nn.functional.mse_loss(model(X[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append((lr, loss.item()))
        time.sleep(0.015)
        if best is not None and loss.item() > 4 * best:
            break
        best = loss.item() if best is None else min(best, loss.item())
    model.load_state_dict(backup)
    return min(curve, key=lambda c: c[1])[0] / 3


def main():
    X = torch.randn(3000, 32)
    y = torch.stack([X[:, :5].prod(1), X.pow(2).mean(1), X[:, 7].sin()], 1)
    model = nn.Sequential(nn.Linear(32, 200), nn.Tanh(), nn.Linear(200, 200), nn.Tanh(), nn.Linear(200, 3))
    lr = lr_find(model, X, y)
    opt = torch.optim.Adam(model.parameters(), min(lr, 1e-3))
    for step in range(160):
        idx = torch.randint(0, 3000, (64,))
        (nn.functional.mse_loss(model(X[idx]), y[idx]) / 4).backward()
        if step % 4 == 3:
            opt.step()
            opt.zero_grad()
        time.sleep(0.012)
    opt = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=2, history_size=60, line_search_fn=None)
    for it in range(70):
        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(X), y) + 1e-5 * sum(p.pow(2).sum() for p in model.parameters())
            loss.backward()
            return loss
        loss = opt.step(closure)
        time.sleep(0.03)
    print("lr", lr, "final", loss.item())


if __name__ == "__main__":
    main()
