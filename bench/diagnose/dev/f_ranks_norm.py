# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes train an autoencoder; gradients are averaged by hand and clipped."""
import torch
import torch.distributed as dist
from torch import nn


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(world)


def run():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(43)
    model = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 16))
    basis = torch.randn(6, 16) * 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(rank)
    for step in range(50):
        x = torch.randn(24, 6) @ basis
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        if rank == 0:
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            if step % 10 == 9:
                print(f"step {step + 1} loss {loss.item():.4f} gradient norm {norm:.3f}", flush=True)
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


run()
