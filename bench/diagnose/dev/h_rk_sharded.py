# SPDX-License-Identifier: GPL-3.0-or-later
"""Sharded optimizer by hand: reduce-scatter of gradients, update of the own half, all-gather of parameters."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


class Shards:
    """All parameters as views into one flat tensor; each rank updates one part of it."""

    def __init__(self, module, make_optimizer):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.params = list(module.parameters())
        total = sum(p.numel() for p in self.params)
        self.size = -(-total // self.world)
        self.flat = torch.zeros(self.size * self.world)
        at = 0
        for p in self.params:
            self.flat[at:at + p.numel()].copy_(p.data.flatten())
            p.data = self.flat[at:at + p.numel()].view_as(p.data)
            at += p.numel()
        dist.broadcast(self.flat, 0)
        self.mine = nn.Parameter(self.flat[self.rank * self.size:(self.rank + 1) * self.size].clone())
        self.optimizer = make_optimizer([self.mine])

    def step(self):
        grads = torch.zeros_like(self.flat)
        at = 0
        for p in self.params:
            grads[at:at + p.numel()] = p.grad.flatten()
            at += p.numel()
        dist.all_reduce(grads)
        self.mine.grad = grads[self.rank * self.size:(self.rank + 1) * self.size] / self.world
        self.optimizer.step()
        parts = [torch.empty_like(self.mine.data) for _ in range(self.world)]
        dist.all_gather(parts, self.mine.data)
        self.flat.copy_(torch.cat(parts))
        for p in self.params:
            p.grad = None


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(1, 24, batch_first=True)
        self.read = nn.Linear(24, 1)

    def forward(self, x):
        return self.read(self.cell(x)[0])


def waves(n, g):
    phase = 6.28 * torch.rand(n, 1, generator=g)
    speed = 0.2 + 0.3 * torch.rand(n, 1, generator=g)
    return torch.sin(phase + speed * torch.arange(25)).unsqueeze(-1)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = Forecast()
shards = Shards(net, lambda p: torch.optim.Adam(p, lr=1e-2))
g = torch.Generator().manual_seed(70 + dist.get_rank())
for step in range(100):
    wave = waves(32, g)
    loss = F.mse_loss(net(wave[:, :-1]), wave[:, 1:])
    loss.backward()
    shards.step()
    if step % 25 == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(step, round(mean.item() / 2, 4), flush=True)
dist.barrier()
dist.destroy_process_group()
