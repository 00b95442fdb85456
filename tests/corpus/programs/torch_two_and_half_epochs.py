import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64)); opt = torch.optim.SGD(net.parameters(), 0.1); step, epoch_out, hist = 0, [], []
while step < 1000:
    for i in range(400):
        x = torch.randn(64, 128); o = net(x); loss = (o - x[:, :64]).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step(); epoch_out.append(o.detach()); step += 1
        if step >= 1000: break
    else:
        hist.append(torch.cat(epoch_out).std().item()); epoch_out = []
print([round(h, 4) for h in hist], len(epoch_out))
