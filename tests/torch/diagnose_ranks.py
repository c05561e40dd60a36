# SPDX-License-Identifier: MIT
"""Two ranks that train one model, with a mistake or without: started by test_diagnose.py."""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

mistake = sys.argv[1]
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank if mistake == "different-start" else 0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
by_hand = mistake in ("different-start", "parameters-part", "scaled-on-one-rank")
model = net if by_hand else DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), 0.02 * (1 + rank if mistake == "parameters-part" else 1))
random = torch.Generator().manual_seed(0 if mistake == "same-data" else rank)
for step in range(12):
    x = torch.randn(16, 4, generator=random)
    y = 3 + x.sum(1, keepdim=True)
    made = model.module(x) if mistake == "not-averaged" else model(x)
    optimizer.zero_grad()
    (made - y).square().mean().backward()
    for parameter in model.parameters() if by_hand else ():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    if mistake == "scaled-on-one-rank" and rank == 0:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    optimizer.step()
dist.destroy_process_group()
