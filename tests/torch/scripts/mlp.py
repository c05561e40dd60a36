# SPDX-License-Identifier: MIT
"""A classifier of two spirals: a plain training loop, as in any tutorial. No word of a debugger."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def spirals(count):
    """Points (2 * count, 2) on two spirals and which of them each belongs to."""
    angle = torch.linspace(0, 9, count)
    radius = torch.linspace(0.2, 1, count)
    arm = torch.stack((radius * torch.sin(angle), radius * torch.cos(angle)), dim=1)
    return torch.cat((arm, -arm)) + 0.02 * torch.randn(2 * count, 2), torch.arange(2).repeat_interleave(count)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(2, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


def in_half(net, x):
    """The net's result in float16: by autocast, where PyTorch has that on the CPU (2.2); else of one layer."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 2):
        return net.out(torch.relu(net.fc2(torch.relu(net.fc1(x)).half().float())))
    with torch.autocast(x.device.type, dtype=torch.float16):
        return net(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--save")
    parser.add_argument("--mistake", choices=("log-zero", "no-zero-grad", "huge-lr", "dead-relu", "untrained",
                                              "label", "sum-loss", "detached", "half", "axis"))
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data, label = spirals(100)
    net = Net(32)
    if args.mistake == "huge-lr":
        args.lr *= 1000
    if args.mistake == "dead-relu":
        net.fc2.bias.data.fill_(-100)
    if args.mistake == "untrained":  # one layer is frozen, and one is not given to the optimizer
        net.fc1.requires_grad_(False)
    if args.mistake == "label":
        label[150] = 2
    trained = net.out if args.mistake == "untrained" else net
    optimizer = torch.optim.SGD([p for p in trained.parameters() if p.requires_grad], lr=args.lr, momentum=0.9)
    for step in range(1, args.steps + 1):
        rows = torch.randperm(len(data))[:64]
        if args.mistake == "label":
            rows = torch.arange(64) + 16 * (step - 1)
        if args.mistake == "detached":
            hidden = torch.relu(net.fc1(data[rows])).detach()
            output = net.out(torch.relu(net.fc2(hidden)))
        elif args.mistake == "axis":  # probabilities over the batch, and a first layer that is kept from learning
            with torch.no_grad():
                hidden = torch.relu(net.fc1(data[rows]))
            output = torch.softmax(net.out(torch.relu(net.fc2(hidden))), dim=0)
        elif args.mistake == "half" and step == 3:
            data.mul_(3e7)  # as from a file in other units
            output = in_half(net, data[rows])
        else:
            output = net(data[rows])
        if args.mistake == "log-zero" and step == 5:
            probability = F.softmax(output * 1000, dim=1)
            loss = -torch.log(probability[torch.arange(64), 1 - label[rows]]).mean()
        elif args.mistake == "axis":
            loss = F.nll_loss(torch.log(output), label[rows])
        elif args.mistake == "sum-loss":
            loss = F.cross_entropy(output, label[rows], reduction="sum")
        else:
            loss = F.cross_entropy(output, label[rows])
        if args.mistake != "no-zero-grad":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.4f" % loss.item())
    if args.save:
        torch.save(net.state_dict(), args.save)


if __name__ == "__main__":
    main()
