"""A moving average of a network is kept beside it, and swapped in for each evaluation."""

import copy

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(32, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 8))
    mean = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scores = []
    for step in long_enough(700, SETTLED_S):
        x = torch.randn(64, 32)
        loss = F.cross_entropy(model(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(mean.parameters(), model.parameters(), strict=True):
                old.lerp_(new, 0.02)
            for old, new in zip(mean.buffers(), model.buffers(), strict=True):
                old.copy_(new)
        if step % 50 == 49:
            before = {name: value.clone() for name, value in model.state_dict().items()}
            model.load_state_dict(mean.state_dict())
            model.eval()
            with torch.no_grad():
                scores.append((model(x).argmax(1) == x[:, :8].argmax(1)).float().mean().item())
            model.train()
            model.load_state_dict(before)
    print(f"{scores[0]:.3f} -> {scores[-1]:.3f}")


if __name__ == "__main__":
    main()
