# SPDX-License-Identifier: GPL-3.0-or-later
"""DDP text classifier with a sampler for each process."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Reviews(Dataset):
    def __init__(self, n=512):
        g = torch.Generator().manual_seed(0)
        self.tokens = torch.randint(0, 80, (n, 10), generator=g)
        self.labels = ((self.tokens < 40).float().mean(1) > 0.5).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(80, 16)
        self.fc = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.fc(self.embed(tokens))


def main():
    rank = int(os.environ["RANK"])
    device_index = int(os.environ.get("DEVICE_INDEX", 0))
    torch.manual_seed(47)
    data = Reviews()
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=device_index)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = DistributedDataParallel(Bag())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for tokens, labels in loader:
            loss = nn.functional.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
