"""A replay buffer of copies fills to its bound and stays there; a target network follows."""

import copy
import random
from collections import deque

import torch
import torch.nn.functional as F
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    random.seed(1)
    online = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
    memory: deque[tuple[torch.Tensor, int, torch.Tensor]] = deque(maxlen=400)
    state = torch.randn(64)
    for step in long_enough(6000, SETTLED_S):
        action = int(online(state[None]).argmax())
        after = 0.9 * state + 0.1 * torch.randn(64) + 0.01 * action
        memory.append((state, action, after))
        state = after
        if len(memory) >= 64 and step % 2 == 0:
            states, actions, afters = zip(*random.sample(memory, 32), strict=True)
            with torch.no_grad():
                goal = 0.9 * target(torch.stack(afters)).max(1).values
            q = online(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])[:, 0]
            loss = F.smooth_l1_loss(q, goal + 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
    print(f"loss {loss.item():.4f}, {len(memory)} remembered")


if __name__ == "__main__":
    main()
