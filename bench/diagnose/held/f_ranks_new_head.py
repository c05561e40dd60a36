# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune a network on two processes: the head is exchanged for the new task."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    rank = dist.get_rank()
    torch.manual_seed(48)
    net = DDP(Net(10), find_unused_parameters=True)
    net.module.head = nn.Linear(32, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    centers = torch.randn(3, 10)
    draw = torch.Generator().manual_seed(rank)
    for step in range(50):
        y = torch.randint(0, 3, (16,), generator=draw)
        x = centers[y] + 1.5 * torch.randn(16, 10, generator=draw)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 9:
            print(f"{step + 1}: {loss.item():.4f}", flush=True)


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
