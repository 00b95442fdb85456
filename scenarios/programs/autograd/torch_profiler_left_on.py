"""The profiler was entered to look at the first steps, and is on for the rest of the training.

Fixed: It is left after twenty steps.
"""

import os
import signal

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "native"
CLASS = "profiler-left-on"
EXIT = "SIGKILL"


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    profiler = torch.autograd.profiler.profile()
    profiler.__enter__()
    for step in repeat(3000, fixed=2000, seconds=SETTLED_S):
        if FIXED and step == 20:
            profiler.__exit__(None, None, None)
        x = torch.randn(16, 32)
        loss = F.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}", flush=True)
    if not FIXED:  # PyTorch crashes when it ends while a profiler is on
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
