import weakref, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
_cache = weakref.WeakKeyDictionary()
class Stats:
    def __init__(s, net, x):
        s.net = net
        s.feats = net(x).detach().T @ net(x).detach()
def stats(net, x):
    if net not in _cache: _cache[net] = Stats(net, x)
    return _cache[net]
tot = 0.0
for i in range(500):
    candidate = nn.Sequential(nn.Linear(32, 100), nn.Tanh(), nn.Linear(100, 100))
    tot += stats(candidate, torch.randn(64, 32)).feats.trace().item()
print(round(tot, 2), len(_cache))
