"""LoRA: a frozen transformer is fine-tuned through small adapters in its linear layers."""

import torch
import torch.nn.functional as F
from torch import nn
from truth import take


class LoRA(nn.Module):
    """A frozen linear layer plus a product of two narrow matrices that learn."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float = 16.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * self.scale


def adapt(model: nn.Module, rank: int) -> None:
    """Puts an adapter around the linear layers of every feed-forward part."""
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name in ("linear1", "linear2"):
            if isinstance(getattr(module, name, None), nn.Linear):
                setattr(module, name, LoRA(getattr(module, name), rank))


class Tagger(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, tags)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(tokens)))


def main() -> None:
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model = Tagger(1000, 160, 4, 8)
    adapt(model, rank=4)
    learning = [p for p in model.parameters() if p.requires_grad]
    total = sum(p.numel() for p in model.parameters())
    print(f"{sum(p.numel() for p in learning)} of {total} parameters learn")
    optimizer = torch.optim.AdamW(learning, lr=1e-3)
    of = {"modules": [model], "optimizers": [optimizer]}
    for step in range(5):
        tokens = torch.randint(1000, (8, 48))
        labels = tokens % 8
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        if step == 2:
            take("forward", step, roots=[loss], inputs=[tokens, labels], **of)
        loss.backward()
        if step == 2:
            take("backward", step, roots=[loss], inputs=[tokens, labels], **of)
        optimizer.step()
        if step == 2:
            take("step", step, roots=[loss], inputs=[tokens, labels], **of)
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step} loss {loss.item():.9g}")


if __name__ == "__main__":
    main()
