import torch
torch.set_num_threads(1); torch.manual_seed(0)
def stream(seed):
    base = torch.randn(200, 200, generator=torch.Generator().manual_seed(seed))
    for i in range(10):
        yield base.roll(i, 0) @ base.T / 200
class Loader:
    def __init__(self): self.open = []
    def first(self, seed):
        g = stream(seed); self.open.append(g); return next(g)
L, s = Loader(), 0.0
for i in range(700):
    s += L.first(i).diag().mean().item()
print(round(s, 4))
