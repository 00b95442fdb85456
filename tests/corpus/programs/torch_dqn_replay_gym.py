"""DQN-style agent on a gymnasium environment with a bounded replay buffer that is full after 40% of the run."""
import random
import time
from collections import deque
import gymnasium as gym
import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
random.seed(1)
rng = np.random.default_rng(1)


def encode(obs, proj):
    return torch.relu(torch.as_tensor(obs, dtype=torch.float32) @ proj)


def main():
    env = gym.make("CartPole-v1")
    proj = torch.randn(4, 1024)
    q = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 2))
    target = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 2))
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), 1e-3)
    total = 3000
    replay = deque(maxlen=int(total * 0.4))
    obs, _ = env.reset(seed=1)
    s = encode(obs, proj)
    returns, ret = [], 0.0
    for t in range(total):
        eps = max(0.05, 1.0 - t / 1500)
        if rng.random() < eps:
            a = int(rng.integers(2))
        else:
            with torch.no_grad():
                a = int(q(s).argmax())
        obs, r, term, trunc, _ = env.step(a)
        s2 = encode(obs, proj)
        replay.append((s, a, r, s2, float(term)))
        ret += r
        s = s2
        if term or trunc:
            obs, _ = env.reset()
            s = encode(obs, proj)
            returns.append(ret)
            ret = 0.0
        if len(replay) >= 64 and t % 4 == 0:
            bs, ba, br, bn, bd = zip(*random.sample(replay, 32))
            bs, bn = torch.stack(bs), torch.stack(bn)
            with torch.no_grad():
                y = torch.tensor(br) + 0.98 * (1 - torch.tensor(bd)) * target(bn).max(1).values
            pred = q(bs).gather(1, torch.tensor(ba)[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.008)
        if t % 200 == 0:
            target.load_state_dict(q.state_dict())
    print("episodes", len(returns), "mean last", sum(returns[-10:]) / 10)


if __name__ == "__main__":
    main()
