from collections import OrderedDict
import numpy as np, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)

class Sessions:
    def __init__(self, cap): self.cap, self.d = cap, OrderedDict()
    def get(self, u):
        if u in self.d:
            self.d.move_to_end(u); return self.d[u]
        return None
    def put(self, u, h):
        self.d[u] = h; self.d.move_to_end(u)
        while len(self.d) > self.cap: self.d.popitem(last=False)

class Service:
    def __init__(self):
        self.emb = nn.Embedding(1000, 64); self.gru = nn.GRU(64, 256, 2, batch_first=True); self.out = nn.Linear(256, 1000)
        self.sessions = Sessions(128)
    @torch.inference_mode()
    def handle(self, user, items):
        h = self.sessions.get(user)
        y, h = self.gru(self.emb(torch.tensor([items])), h)
        self.sessions.put(user, h)
        return self.out(y[:, -1]).topk(5).indices[0].tolist()

svc, s = Service(), 0
for i in range(1500):
    u = int(rng.zipf(1.3)) % 5000
    s += svc.handle(u, rng.integers(0, 1000, int(rng.integers(1, 6))).tolist())[0]
print(s, len(svc.sessions.d))
