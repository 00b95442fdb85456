"""Federated averaging with per-client control variates which are created lazily the first time a client is sampled."""
import copy
import random
import time
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(11)
random.seed(11)
CLIENTS = 24


def local_train(server, data, c_local, c_global, lr=0.05, steps=5):
    model = copy.deepcopy(server)
    X, y = data
    for _ in range(steps):
        idx = torch.randint(0, len(X), (64,))
        loss = nn.functional.cross_entropy(model(X[idx]), y[idx])
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, g, cl, cg in zip(model.parameters(), grads, c_local, c_global):
                p -= lr * (g - cl + cg)
        time.sleep(0.004)
    new_c = [cl - cg + (s.detach() - p.detach()) / (steps * lr)
             for cl, cg, s, p in zip(c_local, c_global, server.parameters(), model.parameters())]
    return model.state_dict(), new_c, loss.item()


def main():
    server = nn.Sequential(nn.Linear(50, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 6))
    W = torch.randn(50, 6)
    shards = []
    for c in range(CLIENTS):
        X = torch.randn(300, 50) + 0.3 * torch.randn(50)
        shards.append((X, (X @ W).argmax(1)))
    c_global = [torch.zeros_like(p) for p in server.parameters()]
    controls = {}
    for rnd in range(60):
        chosen = random.sample(range(CLIENTS), 4)
        updates, losses = [], []
        for c in chosen:
            if c not in controls:
                controls[c] = [torch.zeros_like(p) for p in server.parameters()]
            state, new_c, l = local_train(server, shards[c], controls[c], c_global)
            for g, n, o in zip(c_global, new_c, controls[c]):
                g += (n - o) / CLIENTS
            controls[c] = new_c
            updates.append(state)
            losses.append(l)
        avg = {k: torch.stack([u[k] for u in updates]).mean(0) for k in updates[0]}
        server.load_state_dict(avg)
        time.sleep(0.02)
    print("loss", sum(losses) / 4, "clients seen", len(controls))


if __name__ == "__main__":
    main()
