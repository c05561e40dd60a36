# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes average their gradients in one flat all-reduce."""
import torch
import torch.distributed as dist
from torch import nn


def synchronize(model):
    flat = torch.cat([p.data.flatten() for p in model.parameters()])
    dist.broadcast(flat, src=0)
    torch.nn.utils.vector_to_parameters(flat, model.parameters())


def reduce_gradients(model):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    place = 0
    for p in model.parameters():
        p.grad.copy_(flat[place:place + p.numel()].view_as(p))
        place += p.numel()


def main():
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    synchronize(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    recent = []
    for step in range(60):
        x = torch.randn(32, 6)
        y = torch.sin(2 * x[:, :1]) + x[:, 1:2]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        reduce_gradients(model)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1} loss of rank 0 {sum(recent[-10:]) / 10:.4f}", flush=True)


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
