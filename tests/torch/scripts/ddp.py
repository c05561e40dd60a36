# SPDX-License-Identifier: MIT
"""Data-parallel training over gloo; start it with torchrun --nproc-per-node 2."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(args):
    rank = dist.get_rank()
    torch.manual_seed(7)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + rank)
    weights = torch.linspace(-1, 1, 8)[:, None]
    for _ in range(args.steps):
        x = torch.randn(32, 8)
        loss = nn.functional.mse_loss(model(x), x @ weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("rank %d of %s loss %.4f" % (rank, os.environ["WORLD_SIZE"], loss.item()))
    if args.save and rank == 0:
        torch.save(model.module.state_dict(), args.save)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--save")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    # In a function, with which the model goes: the last to hold the group, it can hang PyTorch 2.13 at the end.
    train(parser.parse_args())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
