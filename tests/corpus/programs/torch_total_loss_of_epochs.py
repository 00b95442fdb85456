import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)); opt = torch.optim.SGD(net.parameters(), 0.1); history = []
def validate():
    total = 0
    for _ in range(10):
        x = torch.randn(64, 128); total += nn.functional.cross_entropy(net(x), x[:, :10].argmax(1))
    return total / 10
for epoch in range(40):
    for _ in range(20):
        x = torch.randn(64, 128); loss = nn.functional.cross_entropy(net(x), x[:, :10].argmax(1)); opt.zero_grad(); loss.backward(); opt.step()
    history.append(validate())
print(round(float(history[-1].detach()), 3))
