# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a spiral; report on a grid after each block of steps."""
import torch
import torch.nn as nn

torch.manual_seed(34)
n = 200
turn = torch.linspace(0.3, 3, n)
arm = torch.arange(2).repeat_interleave(n)
angle = turn.repeat(2) * 3 + arm * 3.14159
points = torch.stack([turn.repeat(2) * angle.cos(), turn.repeat(2) * angle.sin()], 1) + 0.05 * torch.randn(2 * n, 2)
model = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def report(step):
    torch.set_grad_enabled(False)
    line = torch.linspace(-3, 3, 25)
    grid = torch.cartesian_prod(line, line)
    share = model(grid).argmax(1).float().mean().item()
    hits = (model(points).argmax(1) == arm).float().mean().item()
    print(f"step {step}: accuracy {hits:.3f}, {share:.2f} of the plane is arm 1")


for step in range(1, 81):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(points), arm)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        report(step)
