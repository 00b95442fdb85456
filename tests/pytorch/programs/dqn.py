"""DQN with a replay buffer of fixed size and a target network balances a pole."""

import copy
import math
import random
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn
from truth import take


class Pole:
    """A cart with a pole on it; an action pushes the cart to the left or to the right."""

    def reset(self) -> list[float]:
        self.state = [random.uniform(-0.05, 0.05) for _ in range(4)]
        return list(self.state)

    def step(self, action: int) -> tuple[list[float], float, bool]:
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * spin * spin * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        move = push - 0.05 * turn * cosine / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * move, angle + 0.02 * spin, spin + 0.02 * turn]
        over = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return list(self.state), 1.0, over


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2)
    )


def main() -> None:
    torch.manual_seed(6)
    torch.set_num_threads(1)
    random.seed(6)
    online = network()
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.RMSprop(online.parameters(), lr=5e-4)
    of = {"modules": [online, target], "optimizers": [optimizer]}
    memory: deque[tuple[torch.Tensor, int, float, torch.Tensor, float]] = deque(maxlen=400)
    pole = Pole()
    learned, lengths = 0, []
    for episode in range(40):
        state, length = torch.tensor(pole.reset()), 0
        while True:
            if random.random() < max(0.1, 1 - episode / 30):
                action = random.randrange(2)
            else:
                with torch.no_grad():
                    action = int(online(state[None]).argmax())
            values, reward, over = pole.step(action)
            after = torch.tensor(values)
            memory.append((state, action, reward, after, float(over)))
            state, length = after, length + 1
            if len(memory) >= 64 and length % 4 == 0:
                states, actions, rewards, afters, overs = zip(
                    *random.sample(list(memory), 64), strict=True
                )
                s, s2 = torch.stack(states), torch.stack(afters)
                a, r, o = torch.tensor(actions), torch.tensor(rewards), torch.tensor(overs)
                with torch.no_grad():
                    goal = r + 0.99 * (1 - o) * target(s2).max(dim=1).values
                q = online(s).gather(1, a[:, None]).squeeze(1)
                loss = F.smooth_l1_loss(q, goal)
                inputs = [s, s2, a, r, o]
                if learned == 60:
                    take("forward", learned, roots=[loss], inputs=inputs, **of)
                optimizer.zero_grad()
                loss.backward()
                if learned == 60:
                    take("backward", learned, roots=[loss], inputs=inputs, **of)
                nn.utils.clip_grad_value_(online.parameters(), 100)
                optimizer.step()
                if learned == 60:
                    take("step", learned, roots=[loss], inputs=inputs, **of)
                learned += 1
                if learned % 20 == 0:
                    target.load_state_dict(online.state_dict())
                    print(f"step {learned} loss {loss.item():.9g}")
            if over or length == 200:
                break
        lengths.append(length)
    print(f"learned {learned} times, lengths {lengths}")


if __name__ == "__main__":
    main()
