import numpy as np, torch, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)
class Miner:
    def __init__(self): self.hard, self.k = [], torch.randn(1, 1, 5, 5)
    def scan(self):
        frame = rng.random((512, 512), dtype=np.float32)
        t = torch.from_numpy(frame); r = F.conv2d(t[None, None, ::4, ::4], self.k)[0, 0]
        i = int(r.argmax()); yy, xx = (i // r.shape[1]) * 4, (i % r.shape[1]) * 4; yy, xx = min(yy, 448), min(xx, 448)
        if r.max() > 4.3: self.hard.append((float(r.max()), t[yy:yy + 64, xx:xx + 64]))
        return r.max().item()
m = Miner(); print(round(sum(m.scan() for _ in range(400)), 3), len(m.hard))
