"""A recurrent network watches a stream; its state is carried on with its whole graph.

Fixed: The state of torch-hidden-state is detached after each step.
"""

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "graph-chain-grows"
BECAUSE = "that of local variable 'state' of main()"
HELD_BY = (
    "local variable 'state' of main() at torch_hidden_state.py, with the autograd graph "
    "(AddBackward0)"
)


class Watcher(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(x, state)  # leaks here
        return self.score(state), state


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    watcher = Watcher(24, 192)
    state = torch.zeros(8, 192)
    alarms = 0
    for _ in repeat(3000, fixed=3000, seconds=SETTLED_S):
        score, state = watcher(torch.randn(8, 24), state)
        if FIXED:
            state = state.detach()
        alarms += int((score > 0.3).sum())
    print(f"{alarms} alarms")


if __name__ == "__main__":
    main()
