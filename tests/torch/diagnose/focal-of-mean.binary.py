# SPDX-License-Identifier: GPL-3.0-or-later
"""The focal factor of two classes, with the factors in the other order and a module."""
import sys

import torch

torch.manual_seed(0)


class Focal(torch.nn.Module):
    def __init__(self, gamma, reduction):
        super().__init__()
        self.gamma, self.bce = gamma, torch.nn.BCEWithLogitsLoss(reduction=reduction)

    def forward(self, scores, wanted):
        bce = self.bce(scores, wanted)
        likely = torch.exp(-bce)
        return (bce * (1 - likely).pow(self.gamma)).mean()


inputs = torch.randn(600, 8)
labels = (inputs[:, 0] > 1).float()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
criterion = Focal(2.0, "mean" if "mistake" in sys.argv else "none")
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 600, (32,))
    optimizer.zero_grad()
    criterion(model(inputs[rows]).squeeze(1), labels[rows]).backward()
    optimizer.step()
