# SPDX-License-Identifier: GPL-3.0-or-later
"""Noisy regression with a high rate, evaluated with an exponential average of the weights."""
import torch
from torch import nn


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = model.state_dict()

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            self.shadow[name].mul_(self.decay).add_(value, alpha=1 - self.decay)


def build():
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))


torch.manual_seed(27)
rule = torch.randn(6, 1)
x_test = torch.randn(500, 6)
y_test = torch.relu(x_test @ rule)
model, averaged = build(), build()
average = WeightAverage(model, 0.95)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(150):
    x = torch.randn(8, 6)
    y = torch.relu(x @ rule) + torch.randn(8, 1)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(model)
    if step % 50 == 49:
        averaged.load_state_dict(average.shadow)
        with torch.no_grad():
            plain = nn.functional.mse_loss(model(x_test), y_test).item()
            smooth = nn.functional.mse_loss(averaged(x_test), y_test).item()
        print(f"step {step + 1}: test error {plain:.4f}, with averaged weights {smooth:.4f}")
