import copy, random
from collections import deque
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0); random.seed(0); rng = np.random.default_rng(0)

class Env:
    def reset(self):
        self.s = rng.normal(size=64).astype(np.float32); self.t = 0
        return self.s
    def step(self, a):
        self.s = (0.9 * self.s + 0.1 * rng.normal(size=64) + 0.01 * a).astype(np.float32)
        self.t += 1
        return self.s, float(-np.abs(self.s).mean()), self.t >= 100

class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
        self.replay = deque(maxlen=4000)
        self.steps = 0
    @torch.no_grad()
    def act(self, s):
        if random.random() < 0.1:
            return random.randrange(4)
        return int(self.q(torch.from_numpy(s)).argmax())
    def remember(self, s, a, r, s2, d):
        self.replay.append((torch.tensor(s), a, r, torch.tensor(s2), d))
    def learn(self):
        batch = random.sample(self.replay, 32)
        s = torch.stack([b[0] for b in batch]); s2 = torch.stack([b[3] for b in batch])
        a = torch.tensor([b[1] for b in batch]); r = torch.tensor([b[2] for b in batch])
        d = torch.tensor([b[4] for b in batch], dtype=torch.float32)
        with torch.no_grad():
            y = r + 0.99 * (1 - d) * self.target(s2).max(1).values
        loss = F.smooth_l1_loss(self.q(s).gather(1, a[:, None])[:, 0], y)
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.steps += 1
        if self.steps % 200 == 0:
            self.target.load_state_dict(self.q.state_dict())

env, agent, total = Env(), Agent(), 0.0
for ep in range(100):
    s, done = env.reset(), False
    while not done:
        a = agent.act(s)
        s2, r, done = env.step(a)
        agent.remember(s, a, r, s2, done)
        s = s2; total += r
        if len(agent.replay) > 200 and agent.steps < 1e9 and env.t % 4 == 0:
            agent.learn()
print("return", round(total, 2), len(agent.replay))
