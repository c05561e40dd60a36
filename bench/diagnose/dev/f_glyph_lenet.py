# SPDX-License-Identifier: GPL-3.0-or-later
"""LeNet on synthetic glyphs."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 16, 84)
        self.fc2 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 1).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=1e-6)
parser.add_argument("--iterations", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(28)
glyphs = torch.randn(10, 1, 16, 16)
model = LeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=args.rate, momentum=0.9)
for iteration in range(args.iterations):
    label = torch.randint(0, 10, (32,))
    image = glyphs[label] + 0.5 * torch.randn(32, 1, 16, 16)
    output = model(F.interpolate(image, size=16))
    loss = F.cross_entropy(output, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 10 == 9:
        print(f"{iteration + 1}\t{loss.item():.5f}\t{(output.argmax(1) == label).float().mean().item():.2f}")
