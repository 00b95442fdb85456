# streaming inference without no_grad: the recurrent state carries its whole graph
import time
import torch
torch.manual_seed(29); torch.set_num_threads(1)
cell = torch.nn.GRUCell(32, 96)
readout = torch.nn.Linear(96, 4)
state = torch.zeros(8, 96)
t0 = time.monotonic(); alarms = 0
for i in range(400):
    x = torch.randn(8, 32)
    state = cell(x, state)  # LEAK
    if readout(state).softmax(-1).max().item() > 0.5:
        alarms += 1
    tmp = torch.randn(200, 200) @ torch.randn(200, 200)
    time.sleep(max(0, t0 + i * 0.02 - time.monotonic()))
print(alarms, state.norm().item())
