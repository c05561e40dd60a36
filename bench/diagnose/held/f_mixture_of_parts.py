# SPDX-License-Identifier: GPL-3.0-or-later
"""Additive model: one small curve for each of eight inputs, kept in a dictionary."""
import torch
import torch.nn as nn


class Additive(nn.Module):
    def __init__(self, names, width=16):
        super().__init__()
        self.curves = {}
        for n in names:
            self.curves[n] = {
                "w": torch.randn(1, width, requires_grad=True),
                "b": torch.randn(width, requires_grad=True),
                "v": (torch.randn(width, 1) * 0.3).requires_grad_(),
            }
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, columns):
        total = self.offset
        for n, x in columns.items():
            c = self.curves[n]
            total = total + torch.tanh(x * c["w"] + c["b"]) @ c["v"]
        return total


torch.manual_seed(67)
names = [f"x{i}" for i in range(8)]
model = Additive(names)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(80):
    columns = {n: torch.randn(64, 1) for n in names}
    y = columns["x0"] ** 2 - columns["x3"] + torch.sin(columns["x5"] * 2)
    loss = nn.functional.mse_loss(model(columns), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1}: loss {loss.item():.4f} offset {model.offset.item():.3f}")
