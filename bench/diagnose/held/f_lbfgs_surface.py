# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a radial basis surface with LBFGS."""
import torch

torch.manual_seed(70)
grid = torch.rand(300, 2) * 2 - 1
height = torch.sin(3 * grid[:, 0]) * grid[:, 1] + 0.02 * torch.randn(300)

centres = torch.nn.Parameter(torch.rand(20, 2) * 2 - 1)
width = torch.nn.Parameter(torch.tensor(0.5))
heights = torch.nn.Parameter(torch.zeros(20))
optimizer = torch.optim.LBFGS([centres, width, heights], lr=0.5, max_iter=4, history_size=8)


def surface(points):
    distance = ((points[:, None] - centres) ** 2).sum(-1)
    return torch.exp(-distance / (width ** 2 + 1e-3)) @ heights


def closure():
    loss = torch.mean((surface(grid) - height) ** 2)
    loss.backward()
    return loss


for step in range(20):
    loss = optimizer.step(closure)
    if step % 4 == 0:
        print(f"step {step} loss {loss.item():.6f}")
with torch.no_grad():
    print("final", torch.mean((surface(grid) - height) ** 2).item())
