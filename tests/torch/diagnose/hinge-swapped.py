# SPDX-License-Identifier: GPL-3.0-or-later
"""A triplet loss with the distances in the wrong order."""
import sys

import torch

torch.manual_seed(0)
people = torch.randn(30, 12)
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(100):
    who = torch.randint(0, 30, (32,))
    anchor, positive = (model(people[who] + 0.3 * torch.randn(32, 12)) for _ in range(2))
    negative = model(people[(who + torch.randint(1, 30, (32,))) % 30] + 0.3 * torch.randn(32, 12))
    near, far = (anchor - positive).square().sum(1), (anchor - negative).square().sum(1)
    difference = far - near if "mistake" in sys.argv else near - far
    loss = torch.clamp(difference + 1.0, min=0).mean()  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
