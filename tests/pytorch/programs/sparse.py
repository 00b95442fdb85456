"""A recommender with sparse gradients: embeddings by SparseAdam, the rest by Adagrad."""

import torch
import torch.nn.functional as F
from torch import nn
from truth import take


class Recommender(nn.Module):
    def __init__(self, users: int, items: int, width: int) -> None:
        super().__init__()
        self.users = nn.Embedding(users, width, sparse=True)
        self.seen = nn.EmbeddingBag(items, width, mode="mean", sparse=True)
        self.items = nn.Embedding(items, width, sparse=True)
        self.tower = nn.Sequential(nn.Linear(3 * width, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, user: torch.Tensor, seen: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return self.tower(torch.cat([self.users(user), self.seen(seen), self.items(item)], 1))[:, 0]


def main() -> None:
    torch.manual_seed(14)
    torch.set_num_threads(1)
    model = Recommender(8000, 4000, 64)
    tables = [model.users.weight, model.seen.weight, model.items.weight]
    sparse = torch.optim.SparseAdam(tables, lr=1e-2)
    dense = torch.optim.Adagrad(model.tower.parameters(), lr=1e-2)
    of = {"modules": [model], "optimizers": [sparse, dense]}
    for step in range(8):
        user, item = torch.randint(8000, (128,)), torch.randint(4000, (128,))
        seen = torch.randint(4000, (128, 12))
        clicked = ((user + item) % 2).float()
        inputs = [user, item, seen, clicked]
        loss = F.binary_cross_entropy_with_logits(model(user, seen, item), clicked)
        if step == 4:
            take("forward", step, roots=[loss], inputs=inputs, **of)
        loss.backward()
        if step == 4:
            take("backward", step, roots=[loss], inputs=inputs, **of)
        sparse.step()
        dense.step()
        if step == 4:
            take("step", step, roots=[loss], inputs=inputs, **of)
        sparse.zero_grad()
        dense.zero_grad()
        print(f"step {step} loss {loss.item():.9g}")


if __name__ == "__main__":
    main()
