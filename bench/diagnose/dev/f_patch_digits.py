# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognise noisy 8x8 glyphs with a convolutional network; options on the command line."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_glyphs(glyphs, count):
    labels = torch.randint(0, len(glyphs), (count,))
    images = glyphs[labels] + 0.9 * torch.randn(count, 1, 8, 8)
    return TensorDataset(images, labels)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 16, 10))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()
    torch.manual_seed(17)
    glyphs = (torch.rand(10, 1, 8, 8) > 0.5).float()
    train_set = make_glyphs(glyphs, 2048)
    test_loader = DataLoader(make_glyphs(glyphs, 512), batch_size=256)
    train_loader = DataLoader(train_set, batch_size=32)
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        images, labels = next(iter(train_loader))
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} train loss {loss.item():.4f} test accuracy {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
