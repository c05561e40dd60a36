# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict tomorrow's temperature from a week of measurements."""
import torch
import torch.nn as nn

torch.manual_seed(15)
days = torch.arange(900).float()
temperature = 10 + 8 * torch.sin(days / 58) + torch.randn(900)
scaled = (temperature - temperature.mean()) / temperature.std()
windows = scaled.unfold(0, 8, 1)
inputs, targets = windows[:, :7], windows[:, 7]

model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def compute_loss(rows):
    prediction = model(inputs[rows]).squeeze(1)
    errors = (prediction - targets[rows]).abs()
    return torch.tensor(errors.mean().item(), requires_grad=True)


for step in range(60):
    rows = torch.randint(0, len(inputs), (64,))
    optimizer.zero_grad()
    loss = compute_loss(rows)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print("step", step + 1, "mae", loss.item())
