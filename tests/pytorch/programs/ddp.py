"""DDP over gloo: two processes learn from half the data each and average their gradients."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from truth import take

RANKS = 2


def work(rank: int, store: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(12)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    points = torch.randn(256, 20)
    data = TensorDataset(points, (points.pow(2).sum(1) > 20).long())
    sampler = DistributedSampler(data, RANKS, rank, seed=1)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    network = nn.Sequential(
        nn.Linear(20, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 2)
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    of = {"modules": [model], "optimizers": [optimizer]}
    step = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if step == 5:
                take("forward", step, roots=[loss], inputs=[x, y], **of)
            loss.backward()
            if step == 5:
                take("backward", step, roots=[loss], inputs=[x, y], **of)
            optimizer.step()
            if step == 5:
                take("step", step, roots=[loss], inputs=[x, y], **of)
            step += 1
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / RANKS:.9g}", flush=True)
    dist.destroy_process_group()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(os.path.join(folder, "store"),), nprocs=RANKS)


if __name__ == "__main__":
    main()
