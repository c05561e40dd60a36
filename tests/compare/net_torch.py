# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of net_mindspore.py in PyTorch: the same weights, the same batches, the same steps.

Usage: net_torch.py VALUES.npz STEPS [FAULT] [bfloat16]; a fault is a layer that is not what it should be. Prints the
losses.
"""
import sys

import numpy
import torch
from torch import nn


class Net(nn.Module):
    """Convolution, batch normalization, three dense layers."""

    def __init__(self, fault):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.bn1 = nn.BatchNorm2d(4, eps=0.1 if fault == "eps" else 1e-5)
        self.act = nn.Tanh()
        self.pool = nn.AvgPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(4 * 6 * 6, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 10)

    def forward(self, x):
        """Scores of ten classes."""
        x = self.pool(self.act(self.bn1(self.conv1(x))))
        x = self.act(self.fc1(self.flatten(x)))
        return self.fc3(self.act(self.fc2(x)))


def make(values, fault):
    """The network with the weights of the file."""
    net = Net(fault)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(values[name]))
        if fault == "weight":
            net.fc1.weight[3, 5] += 1
        if fault == "transposed":
            net.fc2.weight.copy_(net.fc2.weight.t().clone())
    return net


def main():
    """Trains on the batches of the file."""
    values = numpy.load(sys.argv[1])
    faults = [word for word in sys.argv[3:] if word != "bfloat16"]
    dtype = torch.bfloat16 if "bfloat16" in sys.argv else torch.float32
    net = make(values, faults[0] if faults else "none").to(dtype)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for step in range(int(sys.argv[2])):
        x, y = torch.from_numpy(values["x"][step]).to(dtype), torch.from_numpy(values["y"][step]).long()
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        print(repr(loss.item()), flush=True)


if __name__ == "__main__":
    main()
