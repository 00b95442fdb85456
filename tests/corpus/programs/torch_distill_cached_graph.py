"""Distil a GCN teacher into a student on k-hop subgraphs, caching subgraph and teacher logits during the first epoch."""
import time
import torch
from torch import nn
from torch_geometric.nn import GCNConv
from torch_geometric.utils import k_hop_subgraph

torch.set_num_threads(1)
torch.manual_seed(13)


class GCN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.a, self.b = GCNConv(48, hidden), GCNConv(hidden, 7)

    def forward(self, x, ei):
        return self.b(self.a(x, ei).relu(), ei)


def main():
    n = 3000
    ei = torch.randint(0, n, (2, 9000))
    ei = torch.cat([ei, ei.flip(0)], 1)
    x = torch.randn(n, 48)
    teacher, student = GCN(128).eval(), GCN(24)
    opt = torch.optim.Adam(student.parameters(), 5e-3)
    batches = torch.randperm(n)[:120 * 12].view(120, 12)
    cache = {}
    for epoch in range(3):
        for b in range(120):
            if b not in cache:
                nodes, sub, where, _ = k_hop_subgraph(batches[b], 2, ei, relabel_nodes=True, num_nodes=n)
                with torch.no_grad():
                    feats = x[nodes]
                    soft = (teacher(feats, sub) / 2).softmax(-1)
                cache[b] = (feats, sub, where, soft)
            feats, sub, where, soft = cache[b]
            out = student(feats, sub)
            loss = nn.functional.kl_div((out / 2).log_softmax(-1), soft, reduction="batchmean")
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.018)
        print(epoch, loss.item(), len(cache))


if __name__ == "__main__":
    main()
