# SPDX-License-Identifier: GPL-3.0-or-later
"""sharded.py ddp|fsdp: two micro-batches, clipped gradients and evaluations, on several ranks."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def dataset():
    """Made once."""
    return TensorDataset(torch.randn(16, 8), torch.randint(0, 3, (16,)))


def train_step(batch):
    """One step of the optimizer."""
    for x, y in batch:
        (nn.functional.cross_entropy(net(x), y) / len(batch)).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def evaluate():
    """The accuracy."""
    net.eval()
    with torch.no_grad():
        right = [(net(x).argmax(1) == y).float().mean() for x, y in DataLoader(data, 8)]
    net.train()
    return sum(right)


dist.init_process_group("gloo")
torch.manual_seed(3)
net = nn.Sequential(Block(8), Block(8), nn.Linear(8, 3))
if sys.argv[1] == "ddp":
    net = nn.parallel.DistributedDataParallel(net)
else:
    from torch.distributed.fsdp import fully_shard
    for block in net[:2]:
        fully_shard(block)
    fully_shard(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
data = dataset()
for epoch in range(4):
    train_step(list(DataLoader(data, 8)))
    evaluate()
dist.destroy_process_group()
