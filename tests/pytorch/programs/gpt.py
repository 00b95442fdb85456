"""A small GPT with tied weights learns a text; gradients are clipped, the rate follows a cosine."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from truth import take

TEXT = (
    "to be or not to be, that is the question; whether it is nobler in the mind to suffer. " * 40
)[:3000]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.proj(F.gelu(self.fc(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        self.apply(self._initialize)

    @staticmethod
    def _initialize(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def batch(data: torch.Tensor, size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(data) - length - 1, (size,))
    x = torch.stack([data[start : start + length] for start in starts])
    y = torch.stack([data[start + 1 : start + length + 1] for start in starts])
    return x, y


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = torch.tensor(list(TEXT.encode()), dtype=torch.long)
    model = GPT(vocabulary=256, length=64, width=128, layers=4, heads=4)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    steps = 6
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps))
    )
    for step in range(steps):
        x, y = batch(data, 8, 64)
        loss = model(x, y)
        if step in (0, 3):
            take(
                "forward",
                step,
                modules=[model],
                optimizers=[optimizer],
                roots=[loss],
                inputs=[x, y],
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step in (0, 3):
            take(
                "backward",
                step,
                modules=[model],
                optimizers=[optimizer],
                roots=[loss],
                inputs=[x, y],
            )
        optimizer.step()
        schedule.step()
        if step in (0, 3):
            take("step", step, modules=[model], optimizers=[optimizer], roots=[loss], inputs=[x, y])
        print(f"step {step} loss {loss.item():.9g} norm {norm.item():.9g}")


if __name__ == "__main__":
    main()
