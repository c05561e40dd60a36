# SPDX-License-Identifier: GPL-3.0-or-later
"""Metric learning with a triplet loss; many triplets are easy, so the loss is sparse."""
import torch
import torch.nn.functional as F
from torch import nn


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.PReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return F.normalize(self.trunk(x), dim=-1)


def points(people, who):
    return people[who] + 0.5 * torch.randn(len(who), 16)


torch.manual_seed(41)
people = torch.randn(25, 16)
model = Embedder()
triplet = nn.TripletMarginLoss(margin=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(80):
    who = torch.randint(0, 25, (64,))
    other = (who + torch.randint(1, 25, (64,))) % 25
    loss = triplet(model(points(people, who)), model(points(people, who)), model(points(people, other)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            everyone = torch.arange(25)
            gallery, probe = model(points(people, everyone)), model(points(people, everyone))
            found = ((probe @ gallery.t()).argmax(1) == everyone).float().mean().item()
        print(f"step {step + 1}: triplet loss {loss.item():.4f}, found {found:.2f}")
