# SPDX-License-Identifier: GPL-3.0-or-later
"""Convolutional network on synthetic digits with train() and test() functions."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(16 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2)).flatten(1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for i, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if i % 5 == 0:
            print(f"Train Epoch: {epoch} [{i}/{len(loader)}] Loss: {loss.item():.4f}")


def test(model, loader):
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            loss += F.nll_loss(output, target, reduction="sum").item()
            right += output.argmax(1).eq(target).sum().item()
    print(f"Test set: average loss {loss / len(loader.dataset):.4f}, accuracy {right}/{len(loader.dataset)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    args = parser.parse_args()
    torch.manual_seed(1)
    shapes = torch.rand(10, 1, 12, 12)
    label = torch.randint(0, 10, (640,))
    image = (shapes[label] + 0.3 * torch.randn(640, 1, 12, 12) - 0.5) / 0.4
    loader = DataLoader(TensorDataset(image[:512], label[:512]), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(image[512:], label[512:]), batch_size=128)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(model, loader, optimizer, epoch)
        test(model, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
