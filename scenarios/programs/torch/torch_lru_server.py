"""A server answers with a network and keeps the embeddings of the fifty latest users."""

import random
from collections import OrderedDict

import torch
from tlmem.scenarios.programs.switch import SETTLED_S, long_enough
from torch import nn

NEEDS = "torch"
OUTCOME = "stable"


class Server:
    def __init__(self) -> None:
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256)).eval()
        self.head = nn.Linear(256, 10).eval()
        self.users: OrderedDict[int, torch.Tensor] = OrderedDict()

    @torch.inference_mode()
    def answer(self, user: int) -> int:
        if user in self.users:
            self.users.move_to_end(user)
        else:
            self.users[user] = self.encoder(torch.randn(8, 64))
            if len(self.users) > 50:
                self.users.popitem(last=False)
        return int(self.head(self.users[user].mean(0)).argmax())


def main() -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    random.seed(1)
    server = Server()
    answers = [0] * 10
    for _ in long_enough(4000, SETTLED_S):
        answers[server.answer(int(random.expovariate(1 / 60)))] += 1
    print(answers)


if __name__ == "__main__":
    main()
