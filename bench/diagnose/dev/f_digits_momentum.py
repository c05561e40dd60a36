# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify synthetic 8x8 digits with a small fully connected network."""
import argparse

import torch
import torch.nn as nn


def make_digits(n, generator):
    prototypes = torch.rand(10, 64, generator=generator) * 16
    labels = torch.randint(0, 10, (n,), generator=generator)
    return prototypes[labels] + torch.randn(n, 64, generator=generator), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    torch.manual_seed(1)
    g = torch.Generator().manual_seed(1)
    images, labels = make_digits(1000, g)
    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    onehot = torch.nn.functional.one_hot(labels, 10).float()
    for step in range(args.steps):
        pick = torch.randint(0, 1000, (64,), generator=g)
        scores = model(images[pick])
        loss = ((scores - onehot[pick]) ** 2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"{step:3d} loss {loss.item():.4g} accuracy {(scores.argmax(1) == labels[pick]).float().mean().item():.2f}")


if __name__ == "__main__":
    main()
