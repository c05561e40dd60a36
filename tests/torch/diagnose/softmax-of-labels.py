# SPDX-License-Identifier: GPL-3.0-or-later
"""Several labels for each example, and a softmax."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(40):
    inputs = torch.randn(32, 8)
    scores = model(inputs)
    if mistake:
        outputs = scores.softmax(1)  # <- here
    else:
        outputs = scores.sigmoid()
    loss = torch.nn.functional.binary_cross_entropy(outputs, (inputs[:, :5] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
