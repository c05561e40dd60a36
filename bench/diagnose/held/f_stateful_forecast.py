# SPDX-License-Identifier: GPL-3.0-or-later
"""Stateful LSTM over consecutive windows of one long series."""
import torch
from torch import nn

torch.manual_seed(72)
series = torch.sin(torch.arange(2000) * 0.1) + 0.5 * torch.sin(torch.arange(2000) * 0.033)
windows = series[:1984].view(4, -1)
lstm = nn.LSTM(1, 24, batch_first=True)
readout = nn.Linear(24, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *readout.parameters()], lr=0.01)

state = None
for step, begin in enumerate(range(0, 480, 16)):
    x = windows[:, begin:begin + 16].unsqueeze(2)
    y = windows[:, begin + 1:begin + 17].unsqueeze(2)
    h, state = lstm(x, state)
    prediction = readout(h[:, :y.shape[1]])
    loss = ((prediction - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"window {step} loss {loss.item():.4f}")
