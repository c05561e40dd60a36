# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributed training of a small convolutional network on drawn bars."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def bars(n, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 2, (n,), generator=g)
    image = 0.6 * torch.randn(n, 1, 12, 12, generator=g)
    at = torch.randint(0, 12, (n,), generator=g)
    for i in range(n):
        if label[i]:
            image[i, 0, at[i]] += 1
        else:
            image[i, 0, :, at[i]] += 1
    return TensorDataset(image, label)


class BarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GELU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 16, 3, padding=1), nn.GELU(), nn.MaxPool2d(2))
        self.head = nn.Linear(16 * 9, 2)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Runner:
    def __init__(self):
        self.rank = dist.get_rank()
        torch.manual_seed(9)
        self.net = DDP(BarNet())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        data = bars(512, seed=1)
        self.loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data, shuffle=True), drop_last=True)

    def epoch(self):
        losses = []
        for image, label in self.loader:
            loss = nn.functional.cross_entropy(self.net(image), label)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def fit(self, epochs):
        for e in range(epochs):
            mean = self.epoch()
            if self.rank == 0:
                print(e, round(mean, 3), flush=True)


dist.init_process_group("gloo")
Runner().fit(8)
dist.barrier()
dist.destroy_process_group()
