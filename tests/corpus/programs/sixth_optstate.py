# continual learning: a new head per task, added to one optimizer; old heads are dropped from the model, not from the optimizer
import time
import torch
torch.manual_seed(24); torch.set_num_threads(1)
body = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU())
opt = torch.optim.Adam(body.parameters(), 1e-3)
t0 = time.monotonic(); k = 0
head = None
for task in range(80):
    head = torch.nn.Linear(128, 100)  # LEAK
    opt.add_param_group({"params": list(head.parameters())})
    X = torch.randn(256, 64); Y = torch.randint(0, 100, (256,))
    for _ in range(5):
        b = torch.randint(0, 256, (64,))
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(body(X[b])), Y[b])
        loss.backward()
        opt.step()
        k += 1
        time.sleep(max(0, t0 + k * 0.02 - time.monotonic()))
print(loss.item())
