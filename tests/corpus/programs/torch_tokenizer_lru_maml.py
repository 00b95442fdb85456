"""Meta-learning over text tasks with an LRU cache of tokenised and embedded sentences that is bounded."""
import time
from collections import OrderedDict
from functools import lru_cache
import torch
from torch import nn
from torch.func import functional_call

torch.set_num_threads(1)
torch.manual_seed(15)


@lru_cache(maxsize=2000)
def tokenise(s):
    return tuple((hash_word(w) % 4000) for w in s.split())


def hash_word(w):
    h = 7
    for c in w:
        h = (h * 31 + ord(c)) & 0xFFFFFFF
    return h


class EmbedLRU:
    def __init__(self, table, cap):
        self.table, self.cap, self.d = table, cap, OrderedDict()

    def __call__(self, s):
        if s in self.d:
            self.d.move_to_end(s)
            return self.d[s]
        e = self.table[torch.tensor(tokenise(s))]
        self.d[s] = e
        if len(self.d) > self.cap:
            self.d.popitem(last=False)
        return e


def main():
    cache = EmbedLRU(torch.randn(4000, 64), 2200)
    net = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 3))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for task in range(300):
        sents = [" ".join(f"w{int(v)}" for v in torch.randint(0, 900, (14,))) for _ in range(16)]
        x = torch.stack([cache(s).mean(0) for s in sents])
        w = torch.randn(64, 3)
        y = (x @ w).argmax(1)
        params = dict(net.named_parameters())
        fast = params
        for _ in range(3):
            loss = nn.functional.cross_entropy(functional_call(net, fast, (x[:8],)), y[:8])
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {k: p - 0.3 * g for (k, p), g in zip(fast.items(), grads)}
        outer = nn.functional.cross_entropy(functional_call(net, fast, (x[8:],)), y[8:])
        opt.zero_grad()
        outer.backward()
        opt.step()
        time.sleep(0.016)
    print("outer", outer.item(), "cached", len(cache.d), tokenise.cache_info().currsize)


if __name__ == "__main__":
    main()
