import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1); torch.manual_seed(0)
# ten tasks, one optimizer with a group for each task
class Lora(nn.Module):
    def __init__(self, d, r):
        super().__init__(); self.a = nn.Parameter(torch.randn(d, r) * .01); self.b = nn.Parameter(torch.zeros(r, d))
    def forward(self, x): return x @ self.a @ self.b
class Model(nn.Module):
    def __init__(self, d=256):
        super().__init__(); self.base = nn.Linear(d, d).requires_grad_(False); self.adapters = nn.ModuleList()
    def forward(self, x, task): return self.base(x) + self.adapters[task](x)
def main():
    model = Model(); opt = None
    for task in range(10):
        model.adapters.append(Lora(256, 32))
        if opt is None: opt = torch.optim.AdamW(model.adapters[-1].parameters(), 1e-3)
        else: opt.add_param_group({"params": model.adapters[-1].parameters()})
        for step in range(150):
            x = torch.randn(32, 256); loss = F.mse_loss(model(x, task), x.roll(task, 1)); opt.zero_grad(); loss.backward(); opt.step()
    print(len(model.adapters), loss.item())
main()
