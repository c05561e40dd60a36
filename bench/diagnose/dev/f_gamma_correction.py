# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn the tone curve of a camera: gain, offset and exponent."""
import torch
from torch import nn

torch.manual_seed(24)


class ToneCurve(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))
        self.offset = nn.Parameter(torch.zeros(3))
        self.gamma = nn.Parameter(torch.ones(3))

    def forward(self, rgb):
        return (self.gain * rgb + self.offset) ** self.gamma


raw = torch.rand(1000, 3) * 0.98
truth = (0.9 * (raw - 0.06).clamp(min=0)) ** torch.tensor([0.45, 0.5, 0.6])
curve = ToneCurve()
optimizer = torch.optim.Adam(curve.parameters(), lr=0.01)
for step in range(150):
    rows = torch.randint(0, 1000, (128,))
    loss = nn.functional.mse_loss(curve(raw[rows]), truth[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.5f} gamma {curve.gamma.tolist()}")
