"""A small and a large model take turns of twenty steps; what is alive rises and falls with them."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 32)
    )


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    models = [network(48), network(256)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9) for model in models]
    losses = [0.0, 0.0]
    for step in long_enough(1200, SETTLED_S):
        turn = step // 20 % 2
        x = torch.randn(64, 32)
        loss = F.mse_loss(models[turn](x), x.sin())
        optimizers[turn].zero_grad(set_to_none=True)
        loss.backward()
        optimizers[turn].step()
        if step % 20 == 19:
            optimizers[turn].zero_grad(set_to_none=True)
        losses[turn] = loss.item()
    print(f"losses {losses[0]:.3f} and {losses[1]:.3f}")


if __name__ == "__main__":
    main()
