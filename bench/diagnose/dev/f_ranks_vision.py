# SPDX-License-Identifier: GPL-3.0-or-later
"""DDP training of a small convolutional network on two processes."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def main():
    rank = dist.get_rank()
    torch.manual_seed(42)

    prototypes = torch.randn(8, 1, 8, 8)
    labels = torch.randint(0, 8, (384,))
    images = prototypes[labels] + 1.2 * torch.randn(384, 1, 8, 8)
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(1))

    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 8))
    net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


dist.init_process_group("gloo")
main()
dist.barrier()
dist.destroy_process_group()
