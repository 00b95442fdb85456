import copy, heapq, itertools, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class TopK:
    def __init__(self, k): self.k, self.heap, self.c = k, [], itertools.count()
    def offer(self, score, net):
        item = (score, next(self.c), {k: v.detach().clone() for k, v in net.state_dict().items()})
        if len(self.heap) < self.k: heapq.heappush(self.heap, item)
        else: heapq.heappushpop(self.heap, item)
net = nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1)); opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 20); top = TopK(4); X = torch.randn(3000, 64); y = X[:, :1] * X[:, 1:2]
for cycle in range(25):
    for i in range(20):
        b = torch.randint(0, 3000, (128,)); loss = ((net(X[b]) - y[b]) ** 2).mean(); opt.zero_grad(); loss.backward(); opt.step(); sched.step()
    with torch.no_grad(): score = -((net(X) - y) ** 2).mean().item()
    top.offer(score, net)
ens = []
for s, _, sd in top.heap:
    n = copy.deepcopy(net); n.load_state_dict(sd); ens.append(n)
with torch.no_grad(): print(len(ens), round(((torch.stack([n(X) for n in ens]).mean(0) - y) ** 2).mean().item(), 4))
