import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self, d): super().__init__(); self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
    def forward(self, x, past):
        k, v = self.k(x), self.v(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        a = torch.softmax(self.q(x) @ k.transpose(1, 2) / 8, -1) @ v
        return x + self.o(a), (k, v)
class ChatServer:
    def __init__(self): self.emb, self.layers, self.head, self.kv = nn.Embedding(300, 64), nn.ModuleList(Layer(64) for _ in range(4)), nn.Linear(64, 300), {}
    @torch.no_grad()
    def say(self, sid, ids, n):
        past = self.kv.get(sid) or [None] * 4; x = ids; out = []
        for _ in range(n):
            h = self.emb(x); new = []
            for l, p in zip(self.layers, past): h, c = l(h, p); new.append(c)
            past = new; x = self.head(h[:, -1:]).argmax(-1); out.append(int(x))
        self.kv[sid] = past
        return out
srv, s = ChatServer(), 0
for i in range(150):
    s += sum(srv.say(i // 2, torch.randint(0, 300, (1, 12)), 20))
print(s, len(srv.kv))
