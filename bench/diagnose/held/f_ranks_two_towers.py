# SPDX-License-Identifier: GPL-3.0-or-later
"""Matching model with two towers on two processes, gradients averaged in one flat buffer."""
import torch
import torch.distributed as dist
from torch import nn


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 8))
        self.answer = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 8))

    def forward(self, q, a):
        return (self.query(q) * self.answer(a)).sum(1)


def reduce_flat(parameters, world):
    gradients = [p.grad for p in parameters]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= world
    for g in gradients:
        g.copy_(flat[:g.numel()].view_as(g))
        flat = flat[g.numel():]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(45)
    model, turn = Towers(), torch.linalg.qr(torch.randn(12, 12))[0]
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(60):
        q = torch.randn(64, 12, generator=g)
        same = torch.rand(64, generator=g) < 0.5
        a = torch.where(same[:, None], q @ turn, torch.randn(64, 12, generator=g))
        loss = nn.functional.binary_cross_entropy_with_logits(model(q, a), same.float())
        optimizer.zero_grad()
        loss.backward()
        reduce_flat(list(model.query.parameters()), world)
        optimizer.step()
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
