import weakref, torch
from concurrent.futures import ThreadPoolExecutor
torch.set_num_threads(1)
class Result:
    def __init__(self, i):
        g = torch.Generator().manual_seed(i); x = torch.randn(64, 512, generator=g)
        self.spec = torch.fft.rfft(x).abs() + torch.fft.rfft(x.cumsum(1)).abs()
        weakref.finalize(self, self.close)
    def close(self): self.spec = None
tot = 0.0
with ThreadPoolExecutor(2) as ex:
    for i in range(0, 600, 4):
        for r in ex.map(Result, range(i, i + 4)): tot += r.spec.mean().item()
print(round(tot, 3))
