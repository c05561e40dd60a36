# SPDX-License-Identifier: MIT
"""A recurrent network that remembers the first number of a sequence: the cell and the loop over time are written
out, as in any lecture. No word of a debugger."""
import argparse

import torch
from torch import nn


class Cell(nn.Module):
    """One step of time: (batch, width) and (batch, 1) to (batch, width)."""

    def __init__(self, width):
        super().__init__()
        self.read = nn.Linear(1, width)
        self.keep = nn.Linear(width, width, bias=False)

    def forward(self, x, hidden):
        return torch.relu(self.read(x) + self.keep(hidden))


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.cell = Cell(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        hidden = torch.zeros(len(x), self.width)
        for time in range(x.shape[1]):
            hidden = self.cell(x[:, time:time + 1], hidden)
        return self.out(hidden).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--mistake", choices=("exploding", "broadcast"))
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = Memory(16)
    nn.init.eye_(model.cell.keep.weight)
    if args.mistake == "exploding":
        model.cell.keep.weight.data.mul_(2.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        x = torch.rand(32, args.length)
        target = x[:, 0]
        output = model(x)
        if args.mistake == "broadcast":
            target = target.unsqueeze(1)
        loss = ((output - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
