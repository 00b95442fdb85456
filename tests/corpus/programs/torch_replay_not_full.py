import random, torch, torch.nn as nn; from collections import deque
torch.set_num_threads(1); torch.manual_seed(0); random.seed(0)
buf = deque(maxlen=20000); q = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 3)); opt = torch.optim.Adam(q.parameters(), 1e-3); s = torch.randn(24)
for t in range(12000):
    with torch.no_grad(): a = int(q(s).argmax())
    s2 = 0.9 * s + 0.1 * torch.randn(24); buf.append((s, a, float(s2[0]), s2)); s = s2
    if t > 200 and t % 10 == 0:
        b = random.sample(buf, 32); y = torch.tensor([x[2] for x in b]) + 0.9 * q(torch.stack([x[3] for x in b])).detach().max(1).values
        l = (q(torch.stack([x[0] for x in b])).gather(1, torch.tensor([[x[1]] for x in b]))[:, 0] - y).pow(2).mean(); opt.zero_grad(); l.backward(); opt.step()
print(len(buf), round(l.item(), 4))
