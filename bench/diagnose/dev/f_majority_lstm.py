# SPDX-License-Identifier: GPL-3.0-or-later
"""Sum up eight noisy readings, some of which are marked to count double, with an LSTM."""
import torch
from torch import nn


class Adder(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def sequences(count, length=8):
    values = torch.randn(count, length)
    double = (torch.rand(count, length) < 0.3).float()
    total = (values * (1 + double)).sum(1, keepdim=True) / length
    return torch.stack([values, double], dim=2), total


torch.manual_seed(0)
model = Adder()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
average = 0.0
for it in range(1, 101):
    x, y = sequences(64)
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    average = loss.item() if it == 1 else 0.9 * average + 0.1 * loss.item()
    if it % 20 == 0:
        print(f"iter {it}: mse {average:.4f} (variance of the totals: {y.var().item():.3f})")
