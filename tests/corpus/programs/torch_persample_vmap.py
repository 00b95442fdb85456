import weakref, torch, torch.nn as nn
from torch.func import functional_call, grad, vmap
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 5)); params = {k: v.detach().clone() for k, v in net.named_parameters()}
def loss_fn(p, x, y): return nn.functional.cross_entropy(functional_call(net, p, (x[None],)), y[None])
psg = vmap(grad(loss_fn), in_dims=(None, 0, 0)); scorer = torch.jit.trace(net, torch.randn(1, 32)); memo = weakref.WeakValueDictionary()
class Box:
    def __init__(self, t): self.t = t
def lookup(k):
    b = memo.get(k)
    if b is None: b = memo[k] = Box(torch.randn(256, 32, generator=torch.Generator().manual_seed(k)))
    return b
for step in range(300):
    box = lookup(step % 37); x = box.t[:48]; y = x[:, :5].argmax(1); g = psg(params, x, y)
    norm = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0); c = (1.0 / norm).clamp(max=1)
    for k in params: params[k] = params[k] - 0.1 * (torch.einsum("i...,i->...", g[k], c) / 48 + 0.001 * torch.randn_like(params[k]))
    if step % 50 == 49: net.load_state_dict(params)
with torch.no_grad(): print(round(scorer(torch.ones(1, 32)).sum().item(), 4), len(memo))
