import torch, torch.nn as nn
torch.set_num_threads(1); torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 256)).eval()
def predict(n):
    outs = []
    with torch.inference_mode():
        for i in range(n): outs.append(net(torch.randn(16, 3, 32, 32)))
    return torch.cat(outs)
emb = predict(350); print(tuple(emb.shape), round(emb.norm().item(), 3))
