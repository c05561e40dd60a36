# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict a share's price from six indicators; prices of new days are not known yet (0 in the table)."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(18)
indicators = torch.randn(640, 6)
rule = torch.randn(6)
price = indicators @ rule + 0.5 * torch.tanh(indicators[:, 0] * indicators[:, 1])
frame = torch.cat([price.unsqueeze(1), indicators], dim=1)
inputs = frame
target = frame[:, :1]

model = nn.Sequential(nn.Linear(7, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    rows = torch.randint(0, 640, (64,))
    loss = F.huber_loss(model(inputs[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.5f}")

unseen = torch.randn(64, 6)
actual = unseen @ rule + 0.5 * torch.tanh(unseen[:, 0] * unseen[:, 1])
with torch.no_grad():
    forecast = model(torch.cat([torch.zeros(64, 1), unseen], dim=1)).squeeze(1)
print(f"error on new days: {F.huber_loss(forecast, actual).item():.4f}")
