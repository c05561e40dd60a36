# SPDX-License-Identifier: GPL-3.0-or-later
"""Deep MLP; a guard on each block keeps the gradients small."""
import torch
from torch import nn


def guard(limit):
    def hook(module, grad_in, grad_out):
        return tuple(None if g is None else g.clamp(max=limit) * (g.norm() > limit) for g in grad_in)
    return hook


def block(n):
    return nn.Sequential(nn.Linear(n, n), nn.LayerNorm(n), nn.ReLU())


class DeepNet(nn.Module):
    def __init__(self, depth=4, n=32, limit=5.0):
        super().__init__()
        self.inp = nn.Linear(9, n)
        self.blocks = nn.ModuleList(block(n) for _ in range(depth))
        self.out = nn.Linear(n, 4)
        for b in self.blocks:
            b.register_full_backward_hook(guard(limit))

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def main():
    torch.manual_seed(64)
    teacher = torch.randn(9, 4)
    net = DeepNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(120):
        x = torch.randn(64, 9)
        y = (x.abs() @ teacher).argmax(1)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print("step", step, "loss", loss.item())


main()
