# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify spectra whose offset is large, with a normalization layer written by hand."""
import torch
import torch.nn as nn

torch.manual_seed(22)


class RunningNorm(nn.Module):
    """Normalize every channel over the batch."""

    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        mean = x.mean(0)
        variance = (x ** 2).mean(0) - mean ** 2
        return (x - mean) / torch.sqrt(variance) * self.gain + self.shift


def spectra(n):
    label = torch.randint(0, 3, (n,))
    channel = torch.arange(24).float()
    peak = torch.exp(-((channel - 4 - 8 * label[:, None].float()) ** 2) / 4)
    return 3000.0 + 0.4 * peak + 0.1 * torch.randn(n, 24), label


model = nn.Sequential(RunningNorm(24), nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(50):
    x, y = spectra(64)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print("step", step + 1, "loss", loss.item())
