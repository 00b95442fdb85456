"""Checkpoints are saved, the latest three are kept as files, the best weights in memory."""

import os
import tempfile

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best, least = {}, float("inf")
    files: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for step in long_enough(600, SETTLED_S):
            x = torch.randn(32, 32)
            loss = F.mse_loss(model(x), x.roll(1, 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() < least:
                least = loss.item()
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
            if step % 20 == 0:
                files.append(os.path.join(folder, f"{step}.pt"))
                torch.save({"model": model.state_dict(), "adam": optimizer.state_dict()}, files[-1])
                for old in files[:-3]:
                    os.remove(old)
                del files[:-3]
        optimizer.load_state_dict(torch.load(files[-1], weights_only=True)["adam"])
        model.load_state_dict(best)
    print(f"least loss {least:.4f}, {len(files)} files")


if __name__ == "__main__":
    main()
