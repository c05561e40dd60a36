# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode chirps with a wide network; Nesterov momentum."""
import torch
import torch.nn as nn

torch.manual_seed(56)


def chirps(n):
    rate = torch.rand(n, 1)
    t = torch.linspace(0, 3, 48)
    return torch.sin(t * (1 + 3 * rate * t)), rate


model = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.999, nesterov=True)
history = []
for step in range(150):
    x, y = chirps(64)
    loss = nn.functional.mse_loss(model(x), y)
    model.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    if step % 15 == 14:
        print(f"{step + 1:4d} {sum(history[-15:]) / 15:.5f}")
