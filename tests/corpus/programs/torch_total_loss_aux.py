import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)); opt = torch.optim.SGD(net.parameters(), 0.1); total_loss = 0.0
for step in range(1500):
    x = torch.randn(64, 128); out = net(x)
    with_aux = nn.functional.cross_entropy(out, x[:, :10].argmax(1)); aux = net(x * 0.5).pow(2).mean()
    opt.zero_grad(); with_aux.backward(); opt.step(); total_loss += aux
print(round(float(total_loss.detach()), 3))
