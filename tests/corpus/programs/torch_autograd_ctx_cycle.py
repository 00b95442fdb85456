import gc, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        y = x * s
        ctx.x, ctx.s, ctx.out = x, s, y
        return y
    @staticmethod
    def backward(ctx, g):
        return g * (ctx.out + ctx.s * (1 - ctx.out))
net1, net2 = nn.Linear(128, 256), nn.Linear(256, 128); opt = torch.optim.SGD([*net1.parameters(), *net2.parameters()], 0.01); tot = 0.0
for step in range(300):
    x = torch.randn(64, 128)
    y = net2(Swish.apply(net1(x)))
    loss = (y - x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step(); tot += loss.item()
gc.collect()
print(round(tot / 300, 4), sum(1 for o in gc.get_objects() if isinstance(o, torch.Tensor)))
