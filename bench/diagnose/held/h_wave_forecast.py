# SPDX-License-Identifier: GPL-3.0-or-later
"""Forecast noisy waves with two LSTM cells unrolled by hand; the last part runs on its own predictions."""
import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.width = width
        self.lstm1, self.lstm2 = nn.LSTMCell(1, width), nn.LSTMCell(width, width)
        self.linear = nn.Linear(width, 1)

    def forward(self, known, future=0):
        zero = known.new_zeros(len(known), self.width)
        h1, c1, h2, c2 = zero, zero, zero, zero
        outputs = []
        for t in range(known.shape[1] + future):
            x = known[:, t:t + 1] if t < known.shape[1] else outputs[-1]
            h1, c1 = self.lstm1(x, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


torch.manual_seed(0)
phase = torch.rand(64, 1) * 60
waves = torch.sin((torch.arange(40) + phase) / 4) + 0.05 * torch.randn(64, 40)
train, test = waves[8:], waves[:8]
model = Sequence()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-2)
criterion = nn.MSELoss()
for step in range(60):
    optimizer.zero_grad()
    loss = criterion(model(train[:, :-1]), train[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 15 == 14:
        with torch.no_grad():
            ahead = model(test[:, :30], future=9)[:, 30:]
            print(f"step {step + 1}: loss {loss.item():.4f}, nine ahead {criterion(ahead, test[:, 31:]).item():.4f}")
