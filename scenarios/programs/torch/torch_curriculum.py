"""Sequences get longer for a third of the training, then their length stays."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.gru = nn.GRU(32, 64, batch_first=True)
        self.out = nn.Linear(64, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.gru(self.embedding(tokens))[0])


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in long_enough(360, SETTLED_S):
        tokens = torch.randint(50, (8, min(4 + step // 4, 32)))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(1, 1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
