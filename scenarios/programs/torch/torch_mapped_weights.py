"""Weights are mapped from a file and shared, time and again; each load replaces the one before."""

import os
import tempfile

import torch
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
    model.share_memory()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.pt")
        total = 0.0
        for step in long_enough(300, SETTLED_S):
            if step % 10 == 0:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(0.99)
                torch.save(model.state_dict(), f"{path}.new")
                os.replace(f"{path}.new", path)
            weights = torch.load(path, mmap=True, weights_only=True)
            model.load_state_dict(weights)
            shared = torch.randn(64, 128).share_memory_()
            with torch.inference_mode():
                total += model(shared).abs().mean().item()
    print(f"{total:.3f}")


if __name__ == "__main__":
    main()
