# SPDX-License-Identifier: GPL-3.0-or-later
"""TripletMarginLoss with the positive and the negative swapped."""
import sys

import torch

torch.manual_seed(0)
people = torch.randn(30, 12)
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
criterion = torch.nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(100):
    who = torch.randint(0, 30, (32,))
    anchor, positive = (model(people[who] + 0.3 * torch.randn(32, 12)) for _ in range(2))
    negative = model(people[(who + torch.randint(1, 30, (32,))) % 30] + 0.3 * torch.randn(32, 12))
    pair = (negative, positive) if "mistake" in sys.argv else (positive, negative)
    optimizer.zero_grad()
    criterion(anchor, *pair).backward()  # <- here
    optimizer.step()
