import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
emb, rnn, out = nn.Embedding(100, 64), nn.LSTM(64, 128, 2), nn.Linear(128, 100); ps = [p for m in (emb, rnn, out) for p in m.parameters()]; opt = torch.optim.Adam(ps, 1e-3)
stream = torch.randint(0, 100, (4001, 16)).cumsum(0) % 100; h, losses = None, []
for t in range(0, 4000 - 20, 20):
    n = int(torch.randint(5, 21, ())); x, y = stream[t:t + n], stream[t + 1:t + n + 1]
    o, h = rnn(emb(x), h); loss = nn.functional.cross_entropy(out(o).flatten(0, 1), y.flatten())
    opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(ps, 1.0); opt.step()
    h = tuple(v.detach() for v in h); losses.append(loss.item())
print(round(sum(losses[-20:]) / 20, 3))
