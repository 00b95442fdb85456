import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
class Square(torch.autograd.Function):
    kept = []
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        Square.kept.append(ctx)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
def main():
    net = nn.Linear(64, 64)
    for i in range(1500):
        x = torch.randn(32, 64)
        y = Square.apply(net(x))
        z = float(y.mean())
main()
