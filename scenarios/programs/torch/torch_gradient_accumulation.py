"""Gradients of sixteen small batches are added up before each step; the loss is summed detached."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(64, 48), layer, nn.Linear(48, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    history = []
    total = torch.zeros(())
    for micro in long_enough(640, SETTLED_S):
        tokens = torch.randint(64, (4, 16))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()) / 16
        loss.backward()
        total += loss.detach()
        if micro % 16 == 15:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            history.append(total.item())
            total.zero_()
    print(f"loss {history[0]:.3f} -> {history[-1]:.3f}")


if __name__ == "__main__":
    main()
