# SPDX-License-Identifier: GPL-3.0-or-later
"""Two interleaved spirals, full-batch training."""
import torch
from torch import nn


def init_weights(layer):
    if isinstance(layer, nn.Linear):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)


def spirals(n):
    turn = torch.linspace(0.5, 4.5, n)
    arm = torch.stack([turn * turn.cos(), turn * turn.sin()], dim=1)
    points = torch.cat([arm, -arm]) + 0.05 * torch.randn(2 * n, 2)
    return points / 3, torch.cat([torch.zeros(n), torch.ones(n)]).long()


torch.manual_seed(4)
points, label = spirals(150)
model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
model.apply(init_weights)
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

for epoch in range(150):
    optimizer.zero_grad()
    output = model(points)
    loss = loss_function(output, label)
    loss.backward()
    optimizer.step()
    if epoch % 30 == 29:
        accuracy = (output.argmax(1) == label).float().mean().item()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f} accuracy {accuracy:.3f}")
