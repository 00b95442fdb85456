import torch
from torch.utils.data import Dataset, DataLoader
class Aug(Dataset):
    def __init__(s): s.seen = []
    def __len__(s): return 1600
    def __getitem__(s, i):
        img = torch.rand(3, 48, 48).roll(i % 48, 1)
        s.seen.append(img)
        return img.mean((1, 2)), i
if __name__ == "__main__":
    torch.set_num_threads(1); torch.manual_seed(0)
    dl = DataLoader(Aug(), batch_size=32, num_workers=2, persistent_workers=True); tot = 0.0
    for epoch in range(3):
        for x, i in dl: tot += x.sum().item()
    print(round(tot / 100) > 0)
