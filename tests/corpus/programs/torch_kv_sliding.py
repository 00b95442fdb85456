import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, d, h): super().__init__(); self.h, self.qkv, self.o, self.ff = h, nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
    def forward(self, x, cache):
        B, T, D = x.shape; q, k, v = self.qkv(x).view(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        if "k" in cache: k, v = torch.cat([cache["k"], k], 2)[:, :, -64:], torch.cat([cache["v"], v], 2)[:, :, -64:]
        cache["k"], cache["v"] = k, v
        x = x + self.o(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, D))
        return x + self.ff(x)
class LM(nn.Module):
    def __init__(self, V=500, d=96, L=3): super().__init__(); self.e = nn.Embedding(V, d); self.b = nn.ModuleList(Block(d, 4) for _ in range(L)); self.h = nn.Linear(d, V)
    def forward(self, ids, caches):
        x = self.e(ids)
        for b, c in zip(self.b, caches): x = b(x, c)
        return self.h(x[:, -1])
lm, total = LM().eval(), 0
with torch.inference_mode():
    for req in range(25):
        caches = [{} for _ in lm.b]; ids = torch.randint(0, 500, (4, 16)); logits = lm(ids, caches)
        for t in range(int(torch.randint(30, 120, ()))):
            nxt = torch.multinomial(torch.softmax(logits, -1), 1); logits = lm(nxt, caches); total += int(nxt.sum())
print(total)
