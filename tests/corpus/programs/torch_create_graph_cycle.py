import gc, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
def make_model(width):
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
def trial(lr):
    net = make_model(128)
    x = torch.randn(64, 64); y = x.sum(1, keepdim=True).sin()
    opt = torch.optim.SGD(net.parameters(), lr)
    for _ in range(4):
        loss = ((net(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward(create_graph=True)
        reg = sum((p.grad ** 2).sum() for p in net.parameters())
        for p, g in zip(net.parameters(), torch.autograd.grad(reg, list(net.parameters()))):
            p.grad.data.add_(g, alpha=0.01)
        opt.step()
    return loss.item()
best = min(trial(10 ** -(1 + 2 * torch.rand(1).item())) for _ in range(150))
gc.collect()
print("best", round(best, 4))
