"""Six-fold cross-validation whose fold models are kept as an ensemble and then averaged on held-out data."""
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(9)


def net():
    return nn.Sequential(nn.Linear(40, 384), nn.ReLU(), nn.BatchNorm1d(384), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 5))


def fit(X, y, train, steps):
    model = net()
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps):
        idx = train[torch.randint(0, len(train), (96,))]
        loss = nn.functional.cross_entropy(model(X[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.014)
    opt.zero_grad(set_to_none=True)
    return model.eval()


def main():
    X = torch.randn(6000, 40)
    y = (X @ torch.randn(40, 5)).argmax(1)
    test = torch.arange(5400, 6000)
    folds = torch.randperm(5400).chunk(6)
    ensemble, oof = [], torch.zeros(5400, 5)
    for k in range(6):
        train = torch.cat([f for i, f in enumerate(folds) if i != k])
        model = fit(X, y, train, 60)
        with torch.no_grad():
            oof[folds[k]] = model(X[folds[k]]).softmax(1)
        ensemble.append(model)
    with torch.no_grad():
        for _ in range(50):
            noise = 0.05 * torch.randn(600, 40)
            p = torch.stack([m(X[test] + noise).softmax(1) for m in ensemble]).mean(0)
            time.sleep(0.02)
    print("oof", (oof.argmax(1) == y[:5400]).float().mean().item(),
          "test", (p.argmax(1) == y[test]).float().mean().item())


if __name__ == "__main__":
    main()
