# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes train a classifier whose forward is a method of the model."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 48), nn.ReLU())
        self.head = nn.Linear(48, 5)

    def forward(self, x):
        return self.head(self.encoder(x))

    def training_loss(self, x, y):
        return nn.functional.cross_entropy(self(x), y)


def main():
    rank = dist.get_rank()
    torch.manual_seed(41)
    model = DDP(Classifier())
    centers = torch.randn(5, 20)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    torch.manual_seed(100 + rank)
    for step in range(50):
        y = torch.randint(0, 5, (32,))
        x = centers[y] + torch.randn(32, 20)
        loss = model.module.training_loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print("step", step, "loss", round(loss.item(), 4), flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.barrier()
    dist.destroy_process_group()
