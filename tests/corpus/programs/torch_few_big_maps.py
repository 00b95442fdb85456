import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Report: 
    def __init__(s): s.maps = {}
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)); opt = torch.optim.SGD(net.parameters(), 0.05); rep = Report()
for epoch in range(12):
    for _ in range(100):
        x = torch.randn(64, 64); loss = (net(x) - x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad(): z = net(torch.randn(1000, 64)); amap = torch.softmax(z @ z.T, -1)
    rep.maps[epoch] = amap
print(round(loss.item(), 4), len(rep.maps))
