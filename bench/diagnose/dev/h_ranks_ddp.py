# SPDX-License-Identifier: GPL-3.0-or-later
"""DistributedDataParallel on two processes with a sampler and a checkpoint on rank 0."""
import io

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    rank = dist.get_rank()
    torch.manual_seed(18)
    y = torch.randint(0, 6, (480,))
    x = torch.randn(6, 20)[y] + torch.randn(480, 20)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=24, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(20, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / len(loader) / dist.get_world_size():.4f}", flush=True)
            torch.save(model.module.state_dict(), io.BytesIO())


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
