# SPDX-License-Identifier: GPL-3.0-or-later
"""The Jaccard loss of scores that are not probabilities."""
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(40):
    masks = torch.zeros(8, 1, 12, 12)
    for mask in masks:
        row, column = torch.randint(0, 8, (2,)).tolist()
        mask[0, row:row + 4, column:column + 4] = 1
    outputs = model(masks + 0.3 * torch.randn_like(masks))
    if "correct" in sys.argv:
        outputs = outputs.sigmoid()
    both = (outputs * masks).sum(dim=(1, 2, 3))  # <- here
    either = (outputs + masks).sum(dim=(1, 2, 3)) - both
    loss = (1 - (both + 1) / (either + 1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
