"""Contrastive training with a deque of key batches (MoCo) and a retrieval index rebuilt every now and then."""
import time
from collections import deque
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(12)


def encoder():
    return nn.Sequential(nn.Linear(128, 192), nn.ReLU(), nn.Linear(192, 96))


class Index:
    def __init__(self, enc, base):
        with torch.no_grad():
            self.vec = torch.cat([F.normalize(enc(b), dim=1) for b in base.split(256)])

    def query(self, q, k=5):
        return (F.normalize(q, dim=1) @ self.vec.T).topk(k).indices


def main():
    q_enc, k_enc = encoder(), encoder()
    k_enc.load_state_dict(q_enc.state_dict())
    base = torch.randn(6000, 128)
    queue = deque(maxlen=130)
    opt = torch.optim.SGD(q_enc.parameters(), 0.05, momentum=0.9)
    index, hits = None, 0
    for step in range(360):
        ids = torch.randint(0, len(base), (96,))
        v1 = base[ids] + 0.2 * torch.randn(96, 128)
        v2 = base[ids] + 0.2 * torch.randn(96, 128)
        q = F.normalize(q_enc(v1), dim=1)
        with torch.no_grad():
            k = F.normalize(k_enc(v2), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        logits = pos
        if queue:
            neg = torch.cat(list(queue)[-40:])
            logits = torch.cat([pos, q @ neg.T], 1)
            loss = F.cross_entropy(logits / 0.1, torch.zeros(96, dtype=torch.long))
            opt.zero_grad()
            loss.backward()
            opt.step()
        queue.append(k)
        with torch.no_grad():
            for a, b in zip(k_enc.parameters(), q_enc.parameters()):
                a.lerp_(b, 0.01)
        if step % 45 == 20:
            index = Index(q_enc, base)
        if index is not None and step % 10 == 0:
            hits += (index.query(q.detach()) == ids[:, None]).any(1).sum().item()
        time.sleep(0.012)
    print("loss", loss.item(), "hits", hits)


if __name__ == "__main__":
    main()
