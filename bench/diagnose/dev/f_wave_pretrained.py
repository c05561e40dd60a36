# SPDX-License-Identifier: GPL-3.0-or-later
"""Classifier of sine waves; pretrained inside a wrapper, then fine-tuned."""
import os
import tempfile
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


def make_net():
    return nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
        nn.Flatten(), nn.Linear(32, 5))


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def batch(n, shift=0.0):
    y = torch.randint(0, 5, (n,))
    t = torch.linspace(0, 6.28, 64)
    x = torch.sin(t * (y[:, None] + 1) + torch.rand(n, 1) * 6 + shift) + 0.4 * torch.randn(n, 64)
    return x[:, None], y


def fit(net, steps, lr, tag):
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    for i in range(steps):
        x, y = batch(48)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(tag, i, round(loss.item(), 4))


path = os.path.join(tempfile.mkdtemp(), "pretrained.ckpt")
lit = Wrapper(make_net())
fit(lit, 100, 0.05, "pretrain")
torch.save({"state_dict": lit.state_dict(), "epoch": 1}, path)

net = make_net()
ckpt = torch.load(path, map_location="cpu")
net.load_state_dict(ckpt["state_dict"], strict=False)
print("loaded pretrained weights from epoch", ckpt["epoch"])
fit(net, 100, 0.005, "finetune")
