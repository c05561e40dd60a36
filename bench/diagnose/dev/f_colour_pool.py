# SPDX-License-Identifier: GPL-3.0-or-later
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Stage(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)


class Recogniser(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stages = nn.ModuleList([Stage(3, 16), Stage(16, 32)])
        self.head = nn.Linear(16, classes)

    def forward(self, image):
        for stage in self.stages:
            image = stage(image)
        pooled = image.mean(dim=1)
        return self.head(pooled.flatten(1))


def synthetic(n, classes, generator):
    hue = torch.rand(classes, 3, 1, 1, generator=generator)
    freq = torch.rand(classes, 1, 1, 1, generator=generator) * 2 + 0.5
    y = torch.randint(0, classes, (n,), generator=generator)
    phase = torch.rand(n, 1, 1, 1, generator=generator) * 6.28
    xx = torch.arange(16.0).view(1, 1, 1, 16)
    x = hue[y] * torch.sin(freq[y] * xx + phase).expand(-1, 3, 16, 16)
    return x + 0.3 * torch.randn(n, 3, 16, 16, generator=generator), y


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--classes", type=int, default=8)
    opts = ap.parse_args(argv)
    torch.manual_seed(0)
    x, y = synthetic(800, opts.classes, torch.Generator().manual_seed(2))
    net = Recogniser(opts.classes)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for e in range(opts.epochs):
        for rows in torch.randperm(len(x)).split(32):
            sgd.zero_grad()
            loss = F.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            sgd.step()
        print(e, loss.item())


if __name__ == "__main__":
    main()
