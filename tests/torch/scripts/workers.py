# SPDX-License-Identifier: MIT
"""Training from a DataLoader with worker processes, over two epochs."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    """Sine waves of one of three frequencies with noise: (32,) values and which one."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        time = torch.linspace(0, 6.28, 32)
        return torch.sin((1 + index % 3) * time) + 0.1 * torch.randn(32, generator=generator), index % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(6)
    torch.set_num_threads(1)
    loader = DataLoader(Waves(96), batch_size=16, shuffle=True, num_workers=args.workers,
                        persistent_workers=args.workers > 0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch %d loss %.4f" % (epoch, loss.item()))
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
