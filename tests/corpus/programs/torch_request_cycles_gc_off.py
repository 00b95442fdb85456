import gc, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0); gc.disable()
class Step:
    def __init__(self, req): self.req = req
    def run(self, net): self.req.scores = net(self.req.x)
class Request:
    def __init__(self, n):
        self.x = torch.randn(n, 64)
        self.steps = [Step(self), Step(self)]
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16)); tot = 0.0
with torch.no_grad():
    for i in range(1500):
        r = Request(32)
        for st in r.steps: st.run(net)
        tot += r.scores.max().item()
print(round(tot, 3))
