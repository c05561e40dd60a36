# SPDX-License-Identifier: GPL-3.0-or-later
"""Regression with an exponential moving average of the weights for evaluation."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(13)


def sample(n):
    x = torch.rand(n, 2) * 2 - 1
    return x, torch.sin(4 * x[:, :1]) * x[:, 1:] + 0.2 * torch.randn(n, 1)


model = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
ema = AveragedModel(model, avg_fn=lambda old, new, n: 0.9 * old + 0.1 * new)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
test_x = torch.rand(400, 2) * 2 - 1
test_y = torch.sin(4 * test_x[:, :1]) * test_x[:, 1:]
for step in range(120):
    x, y = sample(64)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    if step % 20 == 19:
        with torch.no_grad():
            plain = nn.functional.mse_loss(model(test_x), test_y).item()
            smooth = nn.functional.mse_loss(ema(test_x), test_y).item()
        print(f"step {step + 1} train {loss.item():.4f} test {plain:.4f} test of the average {smooth:.4f}")
