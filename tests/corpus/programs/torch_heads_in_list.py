import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
# heads stay in a plain list, not only in the optimizer
heads = []; body = nn.Linear(64, 64); opt = torch.optim.Adam(body.parameters(), 1e-3)
def main():
    for t in range(120):
        head = nn.Linear(64, 100)
        heads.append(head); opt.add_param_group({"params": head.parameters()})
        for _ in range(6):
            loss = F.cross_entropy(head(body(torch.randn(32, 64))), torch.randint(0, 100, (32,))); opt.zero_grad(); loss.backward(); opt.step()
main()
