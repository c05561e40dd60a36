# SPDX-License-Identifier: MIT
"""A small residual network on generated images (bars of four directions), with a learning-rate schedule."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def bars(count, size):
    """Images (count, 1, size, size) of a bar in one of four directions, and the direction."""
    label = torch.randint(4, (count,))
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    angle = label * (torch.pi / 4)
    distance = (x[None] * torch.cos(angle)[:, None, None] + y[None] * torch.sin(angle)[:, None, None]).abs()
    return (torch.exp(-20 * distance ** 2) + 0.1 * torch.randn(count, size, size))[:, None], label


class Block(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels // stride, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.down = nn.Conv2d(channels // stride, channels, 1, stride, bias=False) if stride > 1 else None

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x if self.down is None else self.down(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.stage1 = nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.stage2 = nn.Sequential(Block(2 * width, 2), *[Block(2 * width) for _ in range(blocks - 1)])
        self.head = nn.Linear(2 * width, 4)

    def forward(self, x):
        x = self.stage2(self.stage1(torch.relu(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(args.threads)
    model = ResNet(args.width, args.blocks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    for _ in range(args.steps):
        images, labels = bars(args.batch, args.size)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        schedule.step()
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
