# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention weights whose softmax runs over the scores of one position."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
layer, score, out = torch.nn.Linear(6, 16), torch.nn.Linear(16, 1), torch.nn.Linear(16, 2)
optimizer = torch.optim.Adam([*layer.parameters(), *score.parameters(), *out.parameters()], lr=0.01)
for step in range(40):
    inputs = torch.randn(32, 9, 6)
    hidden = torch.tanh(layer(inputs))
    weights = torch.softmax(score(hidden), -1 if mistake else 1)  # <- here
    loss = torch.nn.functional.cross_entropy(out((weights * hidden).sum(1)), (inputs[:, :, 0].mean(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
