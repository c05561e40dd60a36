# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ranks that train one model, with a mistake or without: started by test_diagnose.py."""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

mistake = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank if mistake == "different-start" else 0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
by_hand = mistake in ("different-start", "parameters-part", "scaled-on-one-rank", "gradients-summed", "statistics-part",
                      "unequal-steps", "none by hand")
model = net if by_hand else DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), 0.02 * (1 + rank if mistake == "parameters-part" else 1))
torch.manual_seed(0 if mistake == "same-draws-of-ranks" else rank)
random = torch.Generator().manual_seed(0 if mistake == "same-data" else rank)
data = TensorDataset(torch.arange(64))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=None if mistake == "same-data" else sampler)
for epoch in range(2):
    if mistake != "epoch-never-set":
        sampler.set_epoch(epoch)
    for number, numbers in enumerate(loader):
        if mistake == "unequal-steps" and epoch == 1 and number == 4 * rank:
            break
        x = torch.randn(16, 4, generator=random) + (3 * rank if mistake == "statistics-part" else 0)
        y = 3 + x.sum(1, keepdim=True)
        if mistake != "same-data":
            x = x + 0.1 * torch.randn_like(x)
        made = model.module(x) if mistake == "not-averaged" else model(x)
        optimizer.zero_grad()
        (made - y).square().mean().backward()
        for parameter in model.parameters() if by_hand else ():
            dist.all_reduce(parameter.grad)
            if mistake != "gradients-summed":
                parameter.grad /= dist.get_world_size()
        if mistake == "scaled-on-one-rank" and rank == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
dist.destroy_process_group()
