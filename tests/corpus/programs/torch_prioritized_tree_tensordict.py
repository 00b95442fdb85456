"""Off-policy learning from a prioritised sum-tree whose slots hold tensordicts, overwritten as a ring when full."""
import time
import torch
from torch import nn
from tensordict import TensorDict

torch.set_num_threads(1)
torch.manual_seed(7)


class SumTree:
    def __init__(self, cap):
        self.cap, self.tree, self.items, self.head = cap, torch.zeros(2 * cap), [None] * cap, 0

    def set(self, i, p):
        i += self.cap
        d = p - self.tree[i].item()
        while i >= 1:
            self.tree[i] += d
            i //= 2

    def add(self, item, p):
        self.items[self.head] = item
        self.set(self.head, p)
        self.head = (self.head + 1) % self.cap

    def sample(self):
        u, i = torch.rand(()).item() * self.tree[1].item(), 1
        while i < self.cap:
            left = self.tree[2 * i].item()
            i, u = (2 * i, u) if u <= left else (2 * i + 1, u - left)
        return i - self.cap


def main():
    tree = SumTree(512)
    net = nn.Sequential(nn.Linear(512, 128), nn.Tanh(), nn.Linear(128, 4))
    opt = torch.optim.RMSprop(net.parameters(), 5e-4)
    state = torch.randn(512)
    for t in range(1140):
        act = torch.randint(0, 4, ())
        nxt = (state.roll(int(act)) * 0.9 + 0.3 * torch.randn(512)).clone()
        tree.add(TensorDict({"s": state, "a": act, "r": nxt[:16].mean(), "n": nxt}, batch_size=[]), 1.0)
        state = nxt
        if t > 64 and t % 3 == 0:
            ix = [tree.sample() for _ in range(16)]
            ix = [i if tree.items[i] is not None else 0 for i in ix]
            b = torch.stack([tree.items[i] for i in ix])
            with torch.no_grad():
                y = b["r"] + 0.95 * net(b["n"]).max(1).values
            td = net(b["s"]).gather(1, b["a"][:, None])[:, 0] - y
            opt.zero_grad()
            td.pow(2).mean().backward()
            opt.step()
            for i, e in zip(ix, td.detach().abs().tolist()):
                tree.set(i, e + 0.01)
        time.sleep(0.004)
    print("tree mass", tree.tree[1].item())


if __name__ == "__main__":
    main()
