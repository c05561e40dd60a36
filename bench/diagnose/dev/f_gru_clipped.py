# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict the next value of a noisy sine with a GRU."""
import torch
from torch import nn

torch.manual_seed(12)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h)


def batch(n=32, length=30):
    phase = torch.rand(n, 1) * 6.28
    t = torch.arange(length + 1) * 0.35
    wave = torch.sin(t + phase) * 2 + 0.05 * torch.randn(n, length + 1)
    return wave[:, :-1, None], wave[:, 1:, None]


MAX_NORM = 1e-3
model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for step in range(60):
    x, y = batch()
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} mse {loss.item():.4f}")
