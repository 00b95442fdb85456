import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Node:
    def __init__(self, state, parent=None): self.state, self.parent, self.children, self.visits, self.value = state, parent, [], 0, 0.0
    def expand(self, n=4):
        for _ in range(n): self.children.append(Node(self.state + 0.1 * torch.randn_like(self.state), self))
value = nn.Sequential(nn.Linear(512, 64), nn.Tanh(), nn.Linear(64, 1))
@torch.no_grad()
def search(root, sims):
    for _ in range(sims):
        n = root
        while n.children: n = max(n.children, key=lambda c: c.value / (1 + c.visits) + 1.4 / (1 + c.visits))
        n.expand(); v = value(n.state).item()
        while n is not None: n.visits += 1; n.value += v; n = n.parent
    return max(root.children, key=lambda c: c.visits).state.clone()
s, tot = torch.randn(512), 0.0
for move in range(600):
    s = search(Node(s), 40); tot += s.sum().item()
print(round(tot, 3))
