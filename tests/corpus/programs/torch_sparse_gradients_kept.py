import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
emb = nn.Embedding(5000, 64, sparse=True); opt = torch.optim.SparseAdam(emb.parameters(), 1e-3); grads = []
for step in range(500):
    idx = torch.randint(0, 5000, (128,)); loss = emb(idx).pow(2).sum(); opt.zero_grad(); loss.backward()
    grads.append(emb.weight.grad); opt.step()
