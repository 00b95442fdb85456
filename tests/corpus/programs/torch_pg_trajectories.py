from dataclasses import dataclass, field
import numpy as np, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); rng = np.random.default_rng(0)

@dataclass
class Trajectory:
    obs: torch.Tensor
    actions: torch.Tensor
    rewards: list = field(default_factory=list)

class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(48, 64), nn.Tanh(), nn.Linear(64, 6))
        self.opt = torch.optim.Adam(self.net.parameters(), 3e-4)
        self.trajectories = []
    def rollout(self, T):
        s = torch.randn(48); obs, acts, rews = [], [], []
        for _ in range(T):
            with torch.no_grad():
                p = torch.softmax(self.net(s), -1)
            a = int(torch.multinomial(p, 1))
            obs.append(s); acts.append(a); rews.append(float(s[a]))
            s = 0.95 * s + 0.05 * torch.randn(48)
        stacked = torch.stack(obs)
        t = Trajectory(stacked, torch.tensor(acts), rews)
        self.trajectories.append(t)
        return t
    def update(self, t):
        R = torch.tensor(t.rewards).flip(0).cumsum(0).flip(0)
        logp = torch.log_softmax(self.net(t.obs), -1).gather(1, t.actions[:, None])[:, 0]
        loss = -(logp * (R - R.mean())).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        return loss.item()

agent = Agent(); l = 0.0
for ep in range(300):
    t = agent.rollout(int(rng.integers(60, 200)))
    l = agent.update(t)
print("loss", round(l, 4), len(agent.trajectories))
