# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes train a denoiser of short signals."""
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class Denoiser(nn.Module):
    def __init__(self, length=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(length + 1, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, length))

    def forward(self, x, level):
        return self.net(torch.cat([x, level], dim=1))


def signals(n=1024):
    g = torch.Generator().manual_seed(17)
    t = torch.linspace(0, 6.28, 32)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    freq = 1 + 2 * torch.rand(n, 1, generator=g)
    return torch.sin(freq * t + phase)


def corrupt(x):
    level = torch.rand(x.size(0), 1)
    noise = torch.randn_like(x)
    return (1 - level) * x + level * noise, level, noise


def run():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    seed_everything(1234)
    data = TensorDataset(signals())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(Denoiser())
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            noisy, level, noise = corrupt(x)
            loss = nn.functional.mse_loss(model(noisy, level), noise)
            optim.zero_grad()
            loss.backward()
            optim.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


run()
