from dataclasses import dataclass
import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
@dataclass
class Hyp:
    score: float; toks: list; h: torch.Tensor
enc, dec, emb, out = nn.GRU(32, 96), nn.GRUCell(32, 96), nn.Embedding(80, 32), nn.Linear(96, 80)
@torch.no_grad()
def decode(src, B=5, maxlen=25):
    _, h = enc(emb(src)[:, None]); beam, done = [Hyp(0.0, [1], h[0, 0])], []
    for _ in range(maxlen):
        hs = dec(emb(torch.tensor([b.toks[-1] for b in beam])), torch.stack([b.h for b in beam])); lp = torch.log_softmax(3 * out(hs), -1)
        top = lp.topk(B, 1); cand = [Hyp(b.score + s.item(), b.toks + [int(t)], hs[i]) for i, b in enumerate(beam) for s, t in zip(top.values[i], top.indices[i])]
        cand.sort(key=lambda c: -c.score); done += [c for c in cand[:B] if c.toks[-1] == 2]; beam = [c for c in cand[:B] if c.toks[-1] != 2]
        if not beam or len(done) >= B: break
    return max(done + beam, key=lambda c: c.score / len(c.toks)).toks
results = [decode(torch.randint(3, 80, (int(torch.randint(5, 30, ())),))) for _ in range(120)]
print(len(results), sum(map(sum, results)))
