# SPDX-License-Identifier: MIT
"""Data-parallel training over gloo whose gradients are reduced in one piece, or in buckets of LIMIT MiB; start it with
torchrun --nproc-per-node 2: bucket.py STEPS LIMIT"""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS = 1024, 6


def train(steps, limit):
    """Trains a stack of equal layers."""
    torch.manual_seed(7)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=limit)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(100 + dist.get_rank())
    x, target = torch.randn(128, WIDTH), torch.randn(128, WIDTH)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("rank %d loss %.9g" % (dist.get_rank(), loss.item()))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(int(sys.argv[1]), float(sys.argv[2]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
