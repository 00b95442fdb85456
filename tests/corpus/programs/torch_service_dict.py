import numpy as np, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)

class Service:
    def __init__(self):
        self.emb = nn.Embedding(1000, 64); self.gru = nn.GRU(64, 256, 2, batch_first=True); self.out = nn.Linear(256, 1000)
        self.state = {}
    @torch.inference_mode()
    def handle(self, user, items):
        h = self.state.get(user)
        y, h = self.gru(self.emb(torch.tensor([items])), h)
        self.state[user] = h
        return self.out(y[:, -1]).topk(5).indices[0].tolist()

svc, s, newest = Service(), 0, 10
for i in range(1500):
    if rng.random() < 0.5: newest += 1
    u = newest if rng.random() < 0.5 else int(rng.integers(max(0, newest - 50), newest))
    s += svc.handle(f"user-{u}", rng.integers(0, 1000, int(rng.integers(1, 6))).tolist())[0]
print(s, len(svc.state))
