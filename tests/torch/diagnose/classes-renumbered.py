# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of classes that are numbered in each split by itself."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
names = ["ant", "bee", "cricket", "dragonfly", "earwig"]
centers = 3 * torch.randn(5, 8)


def split(count, first):
    which = torch.randint(first, 5, (count,))
    return centers[which] + torch.randn(count, 8), [names[one] for one in which]


def numbers(found, known):
    return torch.tensor([known.index(one) for one in found])


(inputs, found), (held, held_found) = split(600, 0), split(120, 1)
labels = numbers(found, names)
held_labels = numbers(held_found, sorted(set(held_found)) if "mistake" in sys.argv else names)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for epoch in range(4):
    for rows in torch.randperm(600).split(30):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        outputs = model(held)  # <- here
        print(F.cross_entropy(outputs, held_labels).item())
