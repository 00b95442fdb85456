"""A server keeps the keys and values of each conversation and never ends one.

Fixed: A conversation that is over takes its cache with it.
"""

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "dict 'cache' of Attention (local variable 'model' of main() at torch_kv_cache.py) "
    "through a tuple"
)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(self, x: torch.Tensor, session: int) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if session in self.cache:
            keys, values = self.cache[session]
            k, v = torch.cat([keys, k], dim=1), torch.cat([values, v], dim=1)  # leaks here
        self.cache[session] = k, v
        return self.out(F.scaled_dot_product_attention(q, k, v))


@torch.inference_mode()
def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Attention(128)
    total = 0.0
    for session in repeat(400, fixed=500, seconds=SETTLED_S):
        x = torch.randn(1, 8, 128)
        for _ in range(12):
            x = model(x, session)[:, -1:]
        total += x.sum().item()
        if FIXED:
            del model.cache[session]
    print(f"{total:.3f}, {len(model.cache)} conversations")


if __name__ == "__main__":
    main()
