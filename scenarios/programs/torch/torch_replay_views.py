"""A replay buffer keeps one row of each batch of frames: 512 bytes that pin 131 kB.

Fixed: The replay buffer of torch-replay-views clones what it keeps, and has a bound.
"""

from collections import deque

import torch
from tlmem.scenarios.programs.switch import FIXED, SETTLED_S, repeat
from torch import nn

NEEDS = "torch"
OUTCOME = "leak"
CLASS = "view-pins-base"
BECAUSE = "deque 'states' of Replay"
HELD_BY = "deque 'states' of Replay (local variable 'replay' of main() at torch_replay_views.py)"
COUNT = 1200
BYTES = 157_286_400


class Replay:
    def __init__(self) -> None:
        self.states: deque[torch.Tensor] = deque(maxlen=200 if FIXED else None)

    def remember(self, state: torch.Tensor) -> None:
        self.states.append(state.clone() if FIXED else state)


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
    encoder = nn.Sequential(*layers)
    replay = Replay()
    best = 0.0
    for _ in repeat(1200, fixed=1500, seconds=SETTLED_S):
        frames = torch.rand(256, 128)  # leaks here
        values = encoder(frames)[:, 0]
        replay.remember(frames[values.argmax()])
        best += values.max().item()
    print(f"{best:.3f}, {len(replay.states)} states of {replay.states[0].nelement() * 4} bytes")


if __name__ == "__main__":
    main()
