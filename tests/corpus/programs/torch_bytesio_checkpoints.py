import io, torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
class Checkpointer:
    def __init__(self): self.store = {}
    def save(self, step, net, opt):
        buf = io.BytesIO(); torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, buf)
        self.store[step] = buf
    def load(self, step, net): self.store[step].seek(0); net.load_state_dict(torch.load(self.store[step])["net"])
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)); opt = torch.optim.Adam(net.parameters(), 1e-3); ck = Checkpointer()
for step in range(900):
    x = torch.randn(64, 64); loss = (net(x) - x.flip(1)).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 0: ck.save(step, net, opt)
ck.load(890, net); print(round(loss.item(), 4), len(ck.store))
