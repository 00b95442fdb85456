import torch, torch.nn as nn, torch.multiprocessing as mp
def worker(q, done, n):
    torch.set_num_threads(1); torch.manual_seed(1)
    for i in range(n):
        q.put((i, torch.randn(128, 64).share_memory_()))
    done.wait()
class Learner:
    def __init__(self): self.received, self.net = [], nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)); self.opt = torch.optim.Adam(self.net.parameters())
    def step(self, item):
        self.received.append(item[1])
        for _ in range(3):
            loss = (self.net(item[1]) - item[1].sum(1, keepdim=True)).pow(2).mean(); self.opt.zero_grad(); loss.backward(); self.opt.step()
        return loss.item()
if __name__ == "__main__":
    torch.set_num_threads(1); torch.manual_seed(0); mp.set_sharing_strategy("file_system"); ctx = mp.get_context("fork"); q, done = ctx.Queue(8), ctx.Event()
    p = ctx.Process(target=worker, args=(q, done, 400)); p.start(); L = Learner()
    for _ in range(400):
        l = L.step(q.get())
    done.set(); p.join(); print(round(l, 3), len(L.received))
