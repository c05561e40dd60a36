# SPDX-License-Identifier: GPL-3.0-or-later
"""A dropout that is made in forward(): model.eval() does not reach it."""
import sys

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(6, 24), nn.Linear(24, 1)
        self.kept = nn.Dropout(0.3)

    def forward(self, x):
        x = torch.tanh(self.hidden(x))
        x = (nn.Dropout(0.3) if "mistake" in sys.argv else self.kept)(x)  # <- here
        return self.out(x)


torch.manual_seed(0)
scorer = Scorer()
optimizer = torch.optim.Adam(scorer.parameters(), 0.01)
data = torch.randn(200, 6)
wanted = data[:, :1] * data[:, 1:2]
for epoch in range(4):
    scorer.train()
    for part in torch.randperm(160).split(32):
        optimizer.zero_grad()
        nn.functional.mse_loss(scorer(data[part]), wanted[part]).backward()
        optimizer.step()
    scorer.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(scorer(data[160:]), wanted[160:]).item())
