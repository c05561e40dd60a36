# SPDX-License-Identifier: GPL-3.0-or-later
"""DDP with two micro-batches for each update."""
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

MICRO = 2


def train(rank):
    torch.manual_seed(46)
    model = DDP(nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.Generator().manual_seed(7 + rank)
    for update in range(40):
        total = 0.0
        for micro in range(MICRO):
            x = torch.randn(16, 8, generator=rows)
            y = torch.sin(x[:, :1] * 2) + x[:, 1:2]
            last = micro == MICRO
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(x), y) / MICRO
                loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and update % 10 == 0:
            print(f"update {update} loss {total:.4f}", flush=True)


dist.init_process_group("gloo")
train(dist.get_rank())
dist.barrier()
dist.destroy_process_group()
