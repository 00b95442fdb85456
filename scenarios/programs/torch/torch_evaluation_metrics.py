"""Evaluations collect metrics as numbers and predictions as tensors, of one epoch at a time."""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


@torch.no_grad()
def evaluate(model: nn.Module, batches: list[torch.Tensor]) -> dict[str, float]:
    losses, predictions, labels = [], [], []
    for x in batches:
        logits = model(x)
        y = x[:, :6].argmax(1)
        losses.append(F.cross_entropy(logits, y).item())
        predictions.append(logits.argmax(1))
        labels.append(y)
    right = torch.cat(predictions) == torch.cat(labels)
    return {"loss": sum(losses) / len(losses), "right": right.float().mean().item()}


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(24, 128), nn.GELU(), nn.Linear(128, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    test = list(torch.randn(640, 24).split(32))
    history: list[dict[str, float]] = []
    for _ in long_enough(60, SETTLED_S):
        for _ in range(10):
            x = torch.randn(32, 24)
            loss = F.cross_entropy(model(x), x[:, :6].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.append(evaluate(model, test))
    print(f"right {history[0]['right']:.3f} -> {history[-1]['right']:.3f}")


if __name__ == "__main__":
    main()
