# SPDX-License-Identifier: GPL-3.0-or-later
"""A network in PyTorch: ms_net.py is the same in MindSpore, with the same weights and the same batches.

Usage: torch_net.py VALUES.npz [FAULT]; a fault is what this one does differently.
"""
import sys

import numpy
import torch
from torch import nn


class Net(nn.Module):
    """Three dense layers, a batch normalization and a layer normalization."""

    def __init__(self, fault):
        super().__init__()
        self.fc1 = nn.Linear(12, 16)
        self.bn1 = nn.BatchNorm1d(16, eps=0.1 if fault == "eps-batch" else 1e-5)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16, eps=0.1 if fault == "eps-layer" else 1e-5)
        self.fc3 = nn.Linear(16, 5)

    def forward(self, x):
        """Scores of five classes."""
        x = self.relu(self.bn1(self.fc1(x)))
        x = self.relu(self.norm(self.fc2(x)))
        return self.fc3(x)


def main():
    """Trains on the batches of the file."""
    values = numpy.load(sys.argv[1])
    fault = sys.argv[2] if len(sys.argv) > 2 else "none"
    torch.set_num_threads(1)
    net = Net(fault)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(values[name]))
        if fault == "weight":
            net.fc2.weight[3, 5] += 0.5
        if fault == "transposed":
            net.fc2.weight.copy_(net.fc2.weight.t().clone())
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.06 if fault == "lr" else 0.05, momentum=0.9)
    for step, (x, y) in enumerate(zip(values["x"], values["y"]), 1):
        if fault == "eps-later" and step == 3:
            net.bn1.eps = 0.1
        optimizer.zero_grad()
        loss = loss_fn(net(torch.from_numpy(x)), torch.from_numpy(y).long())
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
