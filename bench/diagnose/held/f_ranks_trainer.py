# SPDX-License-Identifier: GPL-3.0-or-later
"""A training class on two processes that wraps the model when it is needed."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model):
        self.inner = model
        self.wrapped = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.seen = 0

    def model_for(self, size):
        """Partial batches need no bucketing."""
        return self.wrapped if size == 32 else self.inner

    def training_step(self, x, y):
        model = self.model_for(len(x))
        loss = nn.functional.cross_entropy(model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seen += len(x)
        return loss.item()


def main():
    rank = dist.get_rank()
    torch.manual_seed(49)
    centers = torch.randn(6, 14)
    trainer = Trainer(nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 6)))
    draw = torch.Generator().manual_seed(50 + rank)
    for epoch in range(6):
        labels = torch.randint(0, 6, (240,), generator=draw)
        inputs = centers[labels] + torch.randn(240, 14, generator=draw)
        losses = [trainer.training_step(x, y) for x, y in zip(inputs.split(32), labels.split(32))]
        if rank == 0:
            print(f"epoch {epoch} examples {trainer.seen} loss {sum(losses) / len(losses):.4f}", flush=True)


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
