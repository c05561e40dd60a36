# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel linear regression; two processes, each with its own share of the rows."""
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

torch.manual_seed(40)
x = torch.randn(800, 10)
y = x @ torch.randn(10, 1) + 0.1 * torch.randn(800, 1)
x, y = x[rank::world], y[rank::world]

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
for p in model.parameters():
    dist.broadcast(p.data, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(50):
    rows = torch.randint(0, len(x), (32,), generator=torch.Generator().manual_seed(step))
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    dist.all_reduce(loss.detach())
    optimizer.step()
    if step % 10 == 9 and rank == 0:
        print(f"step {step + 1} loss {loss.item() / world:.4f}", flush=True)
dist.barrier()
dist.destroy_process_group()
