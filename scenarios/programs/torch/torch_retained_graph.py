"""Two losses share a trunk, so backward retains the graph, and the log keeps the second loss.

Fixed: One backward pass of the sum frees the graph, and the log keeps numbers.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "retained-graph"
BECAUSE = "it is run with retain_graph=True at"


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.label, self.value = nn.Linear(256, 5), nn.Linear(256, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.trunk(x)  # leaks here
        return self.label(h), self.value(h)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    log: list = []
    for _ in repeat(800, fixed=1000, seconds=SETTLED_S):
        x = torch.randn(32, 32)
        label, value = model(x)
        loss1 = F.cross_entropy(label, x[:, :5].argmax(1))
        loss2 = F.mse_loss(value[:, 0], x.mean(1))
        optimizer.zero_grad()
        if FIXED:
            (loss1 + loss2).backward()
        else:
            loss1.backward(retain_graph=True)
            loss2.backward(retain_graph=True)
        optimizer.step()
        log.append((loss1.item(), loss2.item() if FIXED else loss2))
    print(f"loss {log[0][0]:.3f} -> {log[-1][0]:.3f}")


if __name__ == "__main__":
    main()
