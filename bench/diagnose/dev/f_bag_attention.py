# SPDX-License-Identifier: GPL-3.0-or-later
"""Multiple-instance learning: does a bag of 20 vectors hold one that is special?"""
import torch
import torch.nn as nn


class BagClassifier(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, width), nn.ReLU())
        self.score = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))
        self.out = nn.Linear(width, 1)

    def forward(self, bags):
        h = self.encode(bags)
        weights = torch.softmax(self.score(h), dim=0)
        pooled = (weights * h).sum(dim=1)
        return self.out(pooled).squeeze(-1)


def draw(special, count):
    bags = torch.randn(count, 20, 10)
    label = (torch.rand(count) < 0.5).float()
    place = torch.randint(0, 20, (count,))
    bags[torch.arange(count), place] += label.unsqueeze(1) * special
    return bags, label


torch.manual_seed(9)
special = torch.randn(10) * 1.6
model = BagClassifier(10, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(120):
    bags, label = draw(special, 64)
    loss = loss_fn(model(bags), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        with torch.no_grad():
            one_by_one = [(model(bag.unsqueeze(0)) > 0).float().item() for bag in bags]
        right = (torch.tensor(one_by_one) == label).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, right one by one {right:.3f}")
