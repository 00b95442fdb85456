"""Serve generation requests with a small GPT whose KV cache lives for one request, requests getting longer."""
import time
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(4)


class Block(nn.Module):
    def __init__(self, d=128, heads=4):
        super().__init__()
        self.h, self.qkv, self.o = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, past):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(a.transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.n2(x)), (k, v)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(300, 128), nn.Embedding(512, 128)
        self.blocks, self.head = nn.ModuleList([Block() for _ in range(3)]), nn.Linear(128, 300)

    def forward(self, ids, cache=None):
        at = 0 if cache is None else cache[0][0].shape[2]
        x, new = self.tok(ids) + self.pos(torch.arange(at, at + ids.shape[1])), []
        for i, blk in enumerate(self.blocks):
            x, kv = blk(x, None if cache is None else cache[i])
            new.append(kv)
        return self.head(x[:, -1]), new


@torch.no_grad()
def generate(model, prompt, n):
    logits, cache = model(prompt)
    tokens = [prompt]
    for _ in range(n):
        nxt = logits.topk(3).indices[:, torch.randint(0, 3, ()).item()][:, None]
        tokens.append(nxt)
        logits, cache = model(nxt, cache)
        time.sleep(0.004)
    return torch.cat(tokens, 1)


def main():
    model, done = GPT().eval(), 0
    for req in range(14):
        prompt = torch.randint(0, 300, (4, 16 + 8 * req))
        done += generate(model, prompt, 30 + 8 * req).numel()
    print("tokens", done)


if __name__ == "__main__":
    main()
