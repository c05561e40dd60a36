# SPDX-License-Identifier: GPL-3.0-or-later
import torch
import torch.nn as nn
import torch.nn.functional as F


def scans(n, g):
    label = torch.randint(0, 4, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij")
    grid = torch.stack([torch.sin(xx), torch.sin(yy), torch.sin(xx + yy), torch.cos(xx - yy)])
    image = 110 + 50 * grid[label] + 30 * torch.randn(n, 14, 14, generator=g)
    return image.clamp(0, 255).round()[:, None], label


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3)
        self.c2 = nn.Conv2d(12, 24, 3)
        self.fc = nn.Linear(24 * 25, 4)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def train_one_epoch(net, images, labels, opt, mean, std):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(images)).split(40):
        x = (images[rows] - mean) / std
        opt.zero_grad()
        loss = F.cross_entropy(net(x), labels[rows])
        loss.backward()
        opt.step()
        total += loss.item()
    return total


def validate(net, images, labels):
    net.eval()
    with torch.no_grad():
        scores = net(images)
        loss = F.cross_entropy(scores, labels)
        hits = (scores.argmax(1) == labels).float().mean()
    return loss.item(), hits.item()


def main():
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(6)
    x_train, y_train = scans(800, g)
    x_val, y_val = scans(200, g)
    mean, std = x_train.mean(), x_train.std()
    net = LeafNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(6):
        t = train_one_epoch(net, x_train, y_train, opt, mean, std)
        v, acc = validate(net, x_val, y_val)
        print(f"{epoch}: train {t:.3f} val {v:.3f} accuracy {acc:.3f}")


main()
