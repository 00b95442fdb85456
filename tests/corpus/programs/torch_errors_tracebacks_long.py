import numpy as np, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)
def parse(payload):
    feats = torch.from_numpy(payload).float().clone()
    if torch.isnan(feats).any():
        raise ValueError(f"NaN in payload of {len(payload)} rows")
    return feats
class Worker:
    def __init__(self): self.net, self.errors, self.ok = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 5)), [], 0
    def handle(self, payload):
        try:
            with torch.inference_mode(): self.ok += int(self.net(parse(payload)).argmax(1).sum())
        except ValueError as e:
            self.errors.append(e)
w = Worker()
for i in range(9000):
    p = rng.random((20, 128))
    if rng.random() < 0.10: p[3, 7] = np.nan
    w.handle(p)
print(w.ok, len(w.errors))
